"""What happens to a report before anyone sees it: dropped, promoted, shown once, or as it is."""

from __future__ import annotations

from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.severity import (
    CAUTION,
    DISCRETIONARY,
    NOTE,
    REMARK,
    WARNING,
)

SUPPRESSED = 0

# What `--diag-*` options give a number.
ACTIONS = {
    "suppress": SUPPRESSED,
    "remark": REMARK,
    "warning": WARNING,
    "error": DISCRETIONARY,
}


class Policy:
    """The severity each kind has under the options of one link.

    `warnings_as_errors` wins over `no_warnings`, as it does in nvlink. `threshold` is the lowest
    severity that is shown or counted. Only kinds up to `DISCRETIONARY` obey `assign`.
    """

    __slots__ = (
        "_saved",
        "assigned",
        "error_limit",
        "no_infos",
        "no_warnings",
        "once",
        "threshold",
        "warnings_as_errors",
    )

    def __init__(
        self,
        *,
        no_warnings: bool = False,
        warnings_as_errors: bool = False,
        no_infos: bool = False,
        error_limit: int = 0,
        threshold: int = REMARK,
    ) -> None:
        self.no_warnings = no_warnings
        self.warnings_as_errors = warnings_as_errors
        self.no_infos = no_infos
        self.error_limit = error_limit
        self.threshold = threshold
        self.assigned: dict[str, int] = {}
        self.once: set[str] = set()
        self._saved: list[tuple[dict[str, int], set[str]]] = []

    def assign(self, kind: str, severity: int) -> None:
        """Give a kind another severity, `SUPPRESSED` for none; a hard error keeps its own."""
        if KINDS[kind][1] <= DISCRETIONARY:
            self.assigned[kind] = severity

    def restore(self, kind: str) -> None:
        """Give a kind the severity of the table again."""
        self.assigned.pop(kind, None)

    def push(self) -> None:
        """Save what `assign` and `once` hold."""
        self._saved.append((dict(self.assigned), set(self.once)))

    def pop(self) -> None:
        """Restore what the last `push` saved; IndexError when nothing was."""
        self.assigned, self.once = self._saved.pop()

    def severity(self, kind: str) -> int:
        """The severity a report of this kind gets now, `SUPPRESSED` when it is dropped."""
        original = KINDS[kind][1]
        severity = self.assigned.get(kind, original)
        if WARNING <= severity <= CAUTION:
            if self.warnings_as_errors:
                return DISCRETIONARY
            if self.no_warnings:
                return SUPPRESSED
        elif severity == REMARK and self.no_infos and kind not in VERBOSE:
            return SUPPRESSED
        if severity != NOTE and severity < self.threshold:
            return SUPPRESSED
        return severity


# The lines of -v: asked for by name, so -disable-infos leaves them, as it does in nvlink.
VERBOSE = ("verbose-memory", "verbose-function", "verbose-usage")
