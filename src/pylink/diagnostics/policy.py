"""What happens to a report before anyone sees it: dropped, promoted, shown once, or as it is."""

from __future__ import annotations

from pylink.diagnostics.severity import (
    CAUTION,
    DISCRETIONARY,
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

    `warnings_as_errors` wins over `no_warnings`, as it does in nvlink, and leaves `NEVER_ERRORS`
    be; with `as_nvlink` some warnings, `SHOWN_WITH_W`, stay with `no_warnings`. `threshold` is the
    lowest severity that is shown or counted, except for errors and `ASKED_FOR`; `no_infos` drops
    remarks but `SHOWN_WITHOUT_INFOS`, and `DROPPED_AS_INFOS`. `error_limit` ends the link after
    that many errors, 0 for no limit. `numbers` says that numbers are shown, and with them the hint
    how to use one. `in_nvlinks_place` says that the program goes by nvlink's name and prints its
    lines. Only kinds up to `DISCRETIONARY` obey `assign`.
    """

    __slots__ = (
        "as_nvlink",
        "assigned",
        "error_limit",
        "in_nvlinks_place",
        "no_infos",
        "no_warnings",
        "numbers",
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
        numbers: bool = False,
        threshold: int = REMARK,
        as_nvlink: bool = True,
        in_nvlinks_place: bool = False,
    ) -> None:
        self.as_nvlink = as_nvlink
        self.in_nvlinks_place = in_nvlinks_place
        self.no_warnings = no_warnings
        self.warnings_as_errors = warnings_as_errors
        self.error_limit = error_limit
        self.numbers = numbers
        self.no_infos = no_infos
        self.threshold = threshold
        self.assigned: dict[str, int] = {}
        self.once: set[str] = set()

    def assign(self, kind: str, severity: int) -> None:
        """Give a kind another severity, `SUPPRESSED` for none; a hard error keeps its own."""
        from pylink.diagnostics.kinds import KINDS  # only links that report need it

        if KINDS[kind][1] <= DISCRETIONARY:
            self.assigned[kind] = severity

    def restore(self, kind: str) -> None:
        """Give a kind the severity of the table again."""
        self.assigned.pop(kind, None)

    @property
    def suppressed(self) -> frozenset[str]:
        """Kinds that were given `SUPPRESSED`; that is all the policy says about notes."""
        return frozenset(kind for kind, given in self.assigned.items() if given == SUPPRESSED)

    def severity(self, kind: str) -> int:
        """The severity a report of this kind gets now, `SUPPRESSED` when it is dropped."""
        from pylink.diagnostics.kinds import KINDS  # only links that report need it

        original = KINDS[kind][1]
        severity = self.assigned.get(kind, original)
        if WARNING <= severity <= CAUTION:
            if self.as_nvlink and kind in BEFORE_OPTIONS and kind not in self.assigned:
                return severity
            if self.no_infos and kind in DROPPED_AS_INFOS:
                return SUPPRESSED
            if self.no_infos and self.as_nvlink and kind in DROPPED_BY_NVLINK:
                return SUPPRESSED
            if self.warnings_as_errors and (kind not in NEVER_ERRORS or kind in self.assigned):
                return DISCRETIONARY
            if self.no_warnings and not (self.as_nvlink and kind in SHOWN_WITH_W):
                return SUPPRESSED
        dropped = severity < min(self.threshold, DISCRETIONARY)
        dropped |= self.no_infos and severity < WARNING and kind not in SHOWN_WITHOUT_INFOS
        return SUPPRESSED if dropped and kind not in ASKED_FOR else severity


# The lines of -v, which nvlink prints with -disable-infos, too, and remarks of passes.
ASKED_FOR = (
    "verbose-memory",
    "verbose-function",
    "verbose-usage",
    "call-graph",
    "pass-remark",
    "pass-remark-missed",
    "pass-remark-analysis",
    "pass-remark-failure",
)

# Warnings that in nvlink go with -disable-infos, before -Werror sees them, and stay with -w.
DROPPED_AS_INFOS = (
    "output-limited",
    "preserve-relocs-partial",
    "stack-size",
    "never-called",
    "whole-program-mixed",
)

# The same of nvlink alone: it links such inputs to an empty program.
DROPPED_BY_NVLINK = ("arch-not-found",)

# Remarks that nvlink prints with -disable-infos, too.
SHOWN_WITHOUT_INFOS = ("host-info-ignored", "no-host-code")

# What nvlink says while it reads the options, and so before any of them counts.
BEFORE_OPTIONS = ("option-redefined",)

# Warnings about what nvlink links without a word and what may be meant. No -Werror makes errors of
# them, and nvlink's form has notes instead. An option that gives one a severity changes both.
ADVICE = ("virtual-arch-lowered", "kernels-removed", "host-differs")

# Those that no -Werror makes errors of, as nvlink would link: the code is right, if slower.
NEVER_ERRORS = (*ADVICE, "untimed-code")

# Warnings that nvlink's -w leaves.
SHOWN_WITH_W = (*DROPPED_AS_INFOS, *DROPPED_BY_NVLINK, "library-skipped")
