"""The one place every diagnostic passes: filter, count, promote, keep, hand to the renderers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pylink.diagnostics.policy import Policy
from pylink.diagnostics.severity import CATASTROPHE, CAUTION, DISCRETIONARY, WARNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

    from pylink.diagnostics.record import Diagnostic, Fact, Source
    from pylink.facts.releases import Release


class Renderer(ABC):
    """Takes records one by one; `close` comes once, after the last.

    `path` is the file that it writes in the end, None of one that writes to a stream.
    """

    path: str | None = None

    @abstractmethod
    def emit(self, diagnostic: Diagnostic) -> None:
        """Show one record."""

    def for_target(self, target: str | None) -> None:  # noqa: B027 -- some have no place for it
        """Say of the records that come which architecture they are about; None for no word."""

    def close(self, sink: Sink) -> None:  # noqa: B027 -- most have nothing to write then
        """Write what can only be written at the end."""

    def discard(self) -> None:  # noqa: B027 -- most have no file
        """Leave the file as it was; nothing comes after this."""


def suffix_of(target: str | None) -> str:
    """What -report-arch appends to a message."""
    return f" (target: {target})" if target else ""


class Sink:
    """Where phases report.

    `warnings`, `errors` and `catastrophes` count by severity what was reported, repeats that were
    not shown included; `diagnostics` keeps the records that passed the policy, in order.
    `terminated` says that the link was ended, by a fatal kind or by the error limit. `follows` is
    the release of the linker that is followed, None until the inputs were read.
    """

    __slots__ = (
        "_hinted",
        "_seen",
        "catastrophes",
        "diagnostics",
        "errors",
        "follows",
        "policy",
        "renderers",
        "terminated",
        "warnings",
    )

    def __init__(self, *renderers: Renderer, policy: Policy | None = None) -> None:
        self.renderers = list(renderers)
        self.policy = policy or Policy()
        self.diagnostics: list[Diagnostic] = []
        self.errors = 0
        self.warnings = 0
        self.catastrophes = 0
        self.terminated = False
        self.follows: Release | None = None
        self._hinted = False
        self._seen: set[str] = set()

    def report(
        self,
        kind: str,
        *,
        source: Source | None = None,
        children: Iterable[Diagnostic] = (),
        notes: Iterable[Diagnostic] = (),
        hints: Iterable[Diagnostic] = (),
        explain: Callable[[Diagnostic], None] | None = None,
        **facts: Fact,
    ) -> Diagnostic | None:
        """Report one thing; the record, or None when the policy dropped it.

        `facts` are the place, by the names of `record.PLACE`, and the arguments of the template;
        the rest is what `Diagnostic` takes. Raises LinkError after a fatal kind, and after the
        error that reaches the limit.
        """
        severity = self.policy.severity(kind)
        if not severity:
            return None
        from pylink.diagnostics.record import Diagnostic

        diagnostic = Diagnostic(
            kind, facts, source=source, children=children, notes=notes, hints=hints, explain=explain
        )
        diagnostic.level = severity
        diagnostic.assigned = self.policy.assigned.get(kind, 0)
        return self.dispatch(diagnostic)

    def hears(self, kind: str) -> bool:
        """Whether a report of this kind reaches anybody: otherwise it need not be made."""
        return bool(self.policy.severity(kind))

    def fatal(
        self,
        kind: str,
        *,
        hints: Iterable[Diagnostic] = (),
        explain: Callable[[Diagnostic], None] | None = None,
        **facts: Fact,
    ) -> NoReturn:
        """Report a kind that ends the link, for callers whose types must know it does not return.

        ValueError when the kind is not a fatal one.
        """
        self.report(kind, source=None, children=(), notes=(), hints=hints, explain=explain, **facts)
        raise ValueError(f"{kind} is not a fatal diagnostic")

    def take(self, records: Iterable[Diagnostic]) -> None:
        """Report what another sink kept until it was known how; raises as `report` does."""
        for record in records:
            severity = self.policy.severity(record.kind)
            if severity:
                record.level = severity
                record.assigned = self.policy.assigned.get(record.kind, 0)
                self.dispatch(record)

    def dispatch(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """Count, show and keep a record whose severity is settled; None when it was a repeat."""
        severity = diagnostic.level
        if severity >= CATASTROPHE:
            self.catastrophes += 1
        elif severity >= DISCRETIONARY:
            self.errors += 1
        elif severity >= WARNING:
            self.warnings += 1
        repeated = diagnostic.kind in self.policy.once and diagnostic.kind in self._seen
        if not repeated:
            self._seen.add(diagnostic.kind)
            self._show(diagnostic)
            if WARNING <= (diagnostic.assigned or diagnostic.original) <= CAUTION:
                self._hint()
        if severity >= CATASTROPHE:
            self._terminate()
        if severity >= DISCRETIONARY and self.errors == self.policy.error_limit:
            self._show_kind("error-limit")
            self._terminate()
        return None if repeated else diagnostic

    def _hint(self) -> None:
        """After the first warning, say once how to silence it, when numbers are shown."""
        if self.policy.numbers and not self._hinted:
            self._hinted = True
            self._show_kind("suppression-hint")

    def _show_kind(self, kind: str) -> None:
        """Show a record of the sink's own, which no policy drops and nothing counts."""
        from pylink.diagnostics.record import Diagnostic

        self._show(Diagnostic(kind))

    def _show(self, diagnostic: Diagnostic) -> None:
        suppressed = self.policy.suppressed
        if suppressed:
            diagnostic.hide(suppressed)
        self.diagnostics.append(diagnostic)
        for renderer in self.renderers:
            renderer.emit(diagnostic)

    def _terminate(self) -> NoReturn:
        self.terminated = True
        self.stop()

    def stop(self) -> NoReturn:
        """Raise LinkError with everything reported so far, as after a phase that had errors."""
        from pylink.diagnostics.errors import LinkError

        raise LinkError(self.diagnostics)

    def close(self) -> None:
        """Let each renderer write its end; call once, whether the link worked or not.

        A log or document that could not be written is reported here, which never raises.
        """
        from pylink.diagnostics.errors import LinkError

        self.policy.error_limit = 0  # the link that it was for is over
        for renderer in self.renderers:
            try:
                renderer.close(self)
            except LinkError:  # reported, and the exit status says so
                continue

    def exit_code(self) -> int:
        """The status of the process as nvlink gives it: 1 after a fatal, else 255 after errors."""
        if self.terminated:
            return 1
        return 255 if self.errors else 0
