"""The channel for the remarks of a link's passes: it filters, prints and writes them to a file."""

from __future__ import annotations

from pylink.diagnostics.errors import reason_of
from pylink.remarks.record import (
    ANALYSIS,
    ANALYSIS_ALIASING,
    ANALYSIS_FP_COMMUTE,
    FAILURE,
    MISSED,
    PASSED,
    parts_of_place,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern
    from typing import Protocol

    from pylink.diagnostics import Sink
    from pylink.remarks.record import Remark

    class Writer(Protocol):
        """A writer of remarks to the file `path`; `write` appends a batch of remarks.

        The last call is `close`, which completes the file, or `discard`, which gives it up.
        """

        path: str

        def write(self, remarks: list[Remark]) -> None: ...
        def close(self) -> None: ...
        def discard(self) -> None: ...


# Number of remarks that are handed to a writer at once: few enough to stay in the processor's
# cache, and not enough new objects to start Python's garbage collector.
BATCH = 128

# The kind of diagnostic for each kind of remark.
DIAGNOSTICS = {
    PASSED: "pass-remark",
    MISSED: "pass-remark-missed",
    ANALYSIS: "pass-remark-analysis",
    ANALYSIS_FP_COMMUTE: "pass-remark-analysis",
    ANALYSIS_ALIASING: "pass-remark-analysis",
    FAILURE: "pass-remark-failure",
}


class Remarks:
    """The channel of one link, which receives all its remarks by `emit`.

    `passed`, `missed` and `analysis` match the names of passes whose remarks of that kind are
    diagnostics of `sink`; None matches no pass. A remark of the kind FAILURE is shown if any of the
    three matches its pass. `writer` gets the remarks of passes that match `written`, None for all.

    The hotness of a remark is the number of bytes that its decision concerns. Remarks with less
    than `threshold` are dropped; a missing hotness counts as 0. If `hotness` is False and
    `threshold` is 0, the number is removed from all remarks. The pass dce explains why it
    kept each function whose name matches `why_live`.
    """

    def __init__(
        self,
        sink: Sink,
        writer: Writer | None = None,
        *,
        passed: Pattern[str] | None = None,
        missed: Pattern[str] | None = None,
        analysis: Pattern[str] | None = None,
        written: Pattern[str] | None = None,
        hotness: bool = False,
        threshold: int = 0,
        why_live: Pattern[str] | None = None,
    ) -> None:
        self._sink = sink
        self._writer = writer
        self._written = written
        # By kind: a remark is shown if one of these patterns matches the name of its pass.
        self._terminal_patterns = {
            PASSED: (passed,),
            MISSED: (missed,),
            ANALYSIS: (analysis,),
            ANALYSIS_FP_COMMUTE: (analysis,),
            ANALYSIS_ALIASING: (analysis,),
            FAILURE: (passed, missed, analysis),
        }
        self._hotness = hotness or threshold > 0
        self._threshold = threshold
        self.why_live = why_live
        self._routes: dict[str, int] = {}  # results of `_route`, by name of the pass
        self._batch: list[Remark] = []  # for the writer's next call
        self._has_written = False

    def wants(self, pass_name: str, kind: int | None = None) -> bool:
        """Return whether a remark of this pass (and of this kind, if given) is shown or written."""
        route = self._routes.get(pass_name)
        if route is None:
            route = self._route(pass_name)
        return bool(route if kind is None else route & (1 | 1 << kind))

    def wants_reasons(self, pass_name: str) -> bool:
        """Return whether missed, analysis or failure remarks of this pass are shown or written.

        If not, the pass need not find out why a decision was made.
        """
        return any(self.wants(pass_name, kind) for kind in (MISSED, ANALYSIS, FAILURE))

    def _route(self, pass_name: str) -> int:
        """Return where remarks of a pass go, as bits.

        Bit 0 says that they are written to the file, bit n that those of kind n are shown.
        """
        route = 0
        if self._writer is not None and (self._written is None or self._written.search(pass_name)):
            route = 1
        for kind, patterns in self._terminal_patterns.items():
            if any(pattern is not None and pattern.search(pass_name) for pattern in patterns):
                route |= 1 << kind
        self._routes[pass_name] = route
        return route

    def emit(self, remark: Remark) -> None:
        """Show a remark and write it to the file, if the options ask for that.

        The pass must not change the remark afterwards.
        """
        route = self._routes.get(remark.pass_name)
        if route is None:
            route = self._route(remark.pass_name)
        if not self._hotness:
            remark.hotness = None
        elif (remark.hotness or 0) < self._threshold:
            return
        if route & 1:
            self._batch.append(remark)
            if len(self._batch) == BATCH:
                self._flush()
        if route >> remark.kind & 1:
            self._show(remark)

    def _flush(self) -> None:
        """Pass the remarks of the batch to the file's writer, and begin an empty batch."""
        assert self._writer is not None
        batch, self._batch = self._batch, []
        self._has_written = True
        self._writer.write(batch)

    def _show(self, remark: Remark) -> None:
        """Report a remark as a diagnostic, at its source line or else in its file and section."""
        from pylink.diagnostics.record import Source

        text = remark.message
        if remark.hotness is not None:
            text += f" (hotness: {remark.hotness})"
        source = None
        file, section = remark.file, None
        if file is not None and remark.line > 0:
            source = Source(file, remark.line, remark.column)
        elif file is not None:
            file, section = parts_of_place(file)
        self._sink.report(
            DIAGNOSTICS[remark.kind],
            file=file,
            section=section,
            symbol=remark.function,
            source=source,
            text=text,
            pass_name=remark.pass_name,
            # Only tables of remarks (`pylink.remarks.rows`) use the following three.
            name=remark.name,
            message=remark.message,
            hotness=remark.hotness,
        )

    def close(self, *, failed: bool = False) -> None:
        """Complete the file, or discard it if the link failed.

        An error, and a file without remarks, are reported as diagnostics.
        """
        if self._writer is None:
            return
        if failed:
            self._writer.discard()
            return
        if self._batch:
            self._flush()
        try:
            self._writer.close()
        except OSError as error:
            self._sink.report(
                "remarks-not-written", file=self._writer.path, reason=reason_of(error)
            )
            return
        if not self._has_written:
            self._sink.report("no-remarks", file=self._writer.path)
