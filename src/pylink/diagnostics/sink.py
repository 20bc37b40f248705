"""The sink of all diagnostics of a link: it filters, counts, promotes, keeps and renders them."""

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
    """Shows records one by one; `close` is called once, when the link has ended.

    A record after that is about a file that another renderer could not write. `path` is the file
    that this renderer writes at the end; None if it writes to a stream.
    """

    path: str | None = None

    @abstractmethod
    def emit(self, diagnostic: Diagnostic) -> None:
        """Show one record."""

    def for_target(self, target: str | None) -> None:  # noqa: B027 -- some ignore it
        """Set the architecture that the texts of later records name; None to name none."""

    def close(self, sink: Sink) -> None:  # noqa: B027 -- most write nothing at the end
        """Write the end of the output."""

    def discard(self) -> None:  # noqa: B027 -- most have no file
        """Leave the file at `path` as it was before the link; no other call follows."""


def suffix_of(target: str | None) -> str:
    """Return the end of each message with -report-arch, which sets `target`; empty without it."""
    return f" (target: {target})" if target else ""


class Sink:
    """The object to which phases report.

    `warnings`, `errors` and `catastrophes` count reports by severity, including repeats that were
    not shown. `catastrophes` are all fatal ones. `diagnostics` has the records that were shown, in
    order. `terminated` says that a fatal kind or the error limit ended the link. `follows` is the
    release of nvlink whose output the link reproduces; None until the inputs were read.
    """

    __slots__ = (
        "_has_shown_hint", "_reported_kinds", "catastrophes", "diagnostics", "errors", "follows",
        "policy", "renderers", "terminated", "warnings",
    )  # fmt: skip

    def __init__(self, *renderers: Renderer, policy: Policy | None = None) -> None:
        self.renderers = list(renderers)
        self.policy = policy or Policy()
        self.diagnostics: list[Diagnostic] = []
        self.errors = 0
        self.warnings = 0
        self.catastrophes = 0
        self.terminated = False
        self.follows: Release | None = None
        self._has_shown_hint = False
        self._reported_kinds: set[str] = set()  # kinds of which a record was shown

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
        """Report a diagnostic and return its record; None for a repeat, or if the policy drops it.

        A repeat is a later report of a kind that is shown only once. `facts` are the place, by the
        names of `record.PLACE`, and the arguments of the template. The other parameters are those
        of `Diagnostic`. Raises LinkError after a fatal kind, and after the error that reaches the
        limit.
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

    def is_enabled(self, kind: str) -> bool:
        """Return whether the policy lets reports of this kind pass; if not, they can be omitted."""
        return bool(self.policy.severity(kind))

    def fatal(
        self,
        kind: str,
        *,
        hints: Iterable[Diagnostic] = (),
        explain: Callable[[Diagnostic], None] | None = None,
        **facts: Fact,
    ) -> NoReturn:
        """Report a kind that ends the link, and raise LinkError; so this never returns.

        ValueError if the kind is not fatal.
        """
        self.report(kind, source=None, children=(), notes=(), hints=hints, explain=explain, **facts)
        raise ValueError(f"{kind} is not a fatal diagnostic")

    def report_records(self, records: Iterable[Diagnostic]) -> None:
        """Report the records of another sink under this policy; raises like `report`."""
        for record in records:
            severity = self.policy.severity(record.kind)
            if severity:
                record.level = severity
                record.assigned = self.policy.assigned.get(record.kind, 0)
                self.dispatch(record)

    def dispatch(self, diagnostic: Diagnostic) -> Diagnostic | None:
        """Count, show and keep a record whose `level` is final, and return it.

        A repeat, a later record of a kind that is shown only once, is only counted, and None is
        returned. Raises like `report`.
        """
        severity = diagnostic.level
        if severity >= CATASTROPHE:
            self.catastrophes += 1
        elif severity >= DISCRETIONARY:
            self.errors += 1
        elif severity >= WARNING:
            self.warnings += 1
        repeated = diagnostic.kind in self.policy.once and diagnostic.kind in self._reported_kinds
        if not repeated:
            self._reported_kinds.add(diagnostic.kind)
            self._show(diagnostic)
            if WARNING <= (diagnostic.assigned or diagnostic.original) <= CAUTION:
                self._show_suppression_hint()
        if severity >= CATASTROPHE:
            self._terminate()
        if severity >= DISCRETIONARY and self.errors == self.policy.error_limit:
            self._show_kind("error-limit")
            self._terminate()
        return None if repeated else diagnostic

    def _show_suppression_hint(self) -> None:
        """Show once how to silence a warning by its number, if numbers are shown."""
        if self.policy.numbers and not self._has_shown_hint:
            self._has_shown_hint = True
            self._show_kind("suppression-hint")

    def _show_kind(self, kind: str) -> None:
        """Show a record of this kind without counting it, even if the policy drops the kind."""
        from pylink.diagnostics.record import Diagnostic

        self._show(Diagnostic(kind))

    def _show(self, diagnostic: Diagnostic) -> None:
        """Keep a diagnostic, without notes of suppressed kinds, and pass it to each renderer."""
        suppressed = self.policy.suppressed
        if suppressed:
            diagnostic.hide(suppressed)
        self.diagnostics.append(diagnostic)
        for renderer in self.renderers:
            renderer.emit(diagnostic)

    def _terminate(self) -> NoReturn:
        """Raise LinkError, and remember that a fatal kind or the error limit ended the link."""
        self.terminated = True
        self.stop()

    def stop(self) -> NoReturn:
        """Raise LinkError with all records up to here, for example after a phase with errors."""
        from pylink.diagnostics.errors import LinkError

        raise LinkError(self.diagnostics)

    def close(self) -> None:
        """Let each renderer write its end; call this once, after any link.

        A log or document that could not be written is reported. Such a report does not raise.
        """
        from pylink.diagnostics.errors import LinkError

        self.policy.error_limit = 0  # the link is over
        for renderer in self.renderers:
            try:
                renderer.close(self)
            except LinkError:  # reported; the exit status shows it
                continue

    def exit_code(self) -> int:
        """Return nvlink's exit status: 1 after a fatal error or the error limit, 255 after errors.

        It is 0 for a link without errors.
        """
        if self.terminated:
            return 1
        return 255 if self.errors else 0
