"""The policy for reports: which are dropped, promoted, or shown once."""

from __future__ import annotations

from pylink.diagnostics.severity import CAUTION, DISCRETIONARY, REMARK, WARNING

# The value in place of a severity for a kind whose reports are dropped.
SUPPRESSED = 0

# Severities that `--diag-*` options assign, by the end of the option's name.
ACTIONS = {"suppress": SUPPRESSED, "remark": REMARK, "warning": WARNING, "error": DISCRETIONARY}


class Policy:
    """The severity of each kind under the options of one link.

    * `warnings_as_errors`: makes warnings errors, except `NEVER_ERRORS` without an assigned
      severity. It overrides `no_warnings` for the warnings that it makes errors, as in nvlink.
    * `no_warnings`: drops warnings; with `as_nvlink` except `SHOWN_WITH_W`.
    * `no_infos`: drops `DROPPED_AS_INFOS`, with `as_nvlink` also `DROPPED_BY_NVLINK`, and remarks
      except `SHOWN_WITHOUT_INFOS` and `ASKED_FOR`.
    * `threshold`: the lowest severity that is shown or counted. Errors and `ASKED_FOR` always are.
    * `error_limit`: the number of errors after which the link ends; 0: no limit.
    * `numbers`: whether messages have numbers. If so, a hint explains them once, after a warning.
    * `in_nvlinks_place`: whether the program has nvlink's name and prints nvlink's lines.
    * `as_nvlink`: whether the options have nvlink's exceptions: `BEFORE_OPTIONS`,
      `DROPPED_BY_NVLINK`, `SHOWN_WITH_W`. It is set for nvlink's format.
    * `assigned`: by kind, the severity that `assign` gave it.
    * `once`: kinds of which only the first report is shown.
    """

    __slots__ = (
        "as_nvlink", "assigned", "error_limit", "in_nvlinks_place", "no_infos", "no_warnings",
        "numbers", "once", "threshold", "warnings_as_errors",
    )  # fmt: skip

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
        """Give a kind another severity or `SUPPRESSED`; kinds above `DISCRETIONARY` keep theirs."""
        from pylink.diagnostics.kinds import KINDS  # needed only by links that report

        if KINDS[kind][1] <= DISCRETIONARY:
            self.assigned[kind] = severity

    def restore(self, kind: str) -> None:
        """Give a kind back its severity in `KINDS`."""
        self.assigned.pop(kind, None)

    @property
    def suppressed(self) -> frozenset[str]:
        """Kinds that `assign` suppressed; they are also omitted from the notes of other records."""
        return frozenset(kind for kind, assigned in self.assigned.items() if assigned == SUPPRESSED)

    def severity(self, kind: str) -> int:
        """Return the severity of a report of this kind; `SUPPRESSED` if it is dropped."""
        from pylink.diagnostics.kinds import KINDS  # needed only by links that report

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


# Kinds that -disable-infos and the threshold do not drop, since an option asks for them: the call
# graph, remarks of passes, and the lines of -v. nvlink prints these lines even with -disable-infos.
ASKED_FOR = (
    "verbose-memory", "verbose-function", "verbose-usage", "call-graph", "pass-remark",
    "pass-remark-missed", "pass-remark-analysis", "pass-remark-failure",
)  # fmt: skip

# Warnings that nvlink drops with -disable-infos, also with -Werror, but prints with -w.
DROPPED_AS_INFOS = (
    "output-limited",
    "preserve-relocs-partial",
    "stack-size",
    "never-called",
    "whole-program-mixed",
)

# Warnings that -disable-infos drops only with `as_nvlink`. Otherwise they remain, since the output
# may lack code: nvlink links such inputs to an empty program.
DROPPED_BY_NVLINK = ("arch-not-found",)

# Remarks that nvlink prints even with -disable-infos.
SHOWN_WITHOUT_INFOS = ("host-info-ignored", "no-host-code")

# Warnings that nvlink prints while it reads the options. With `as_nvlink` no option affects them,
# except for pylink's own --diag-suppress, --diag-remark, --diag-warning and --diag-error.
BEFORE_OPTIONS = ("option-redefined",)

# Warnings that nvlink does not have, about what may be intended. -Werror does not make them errors,
# and nvlink's format shows them as notes, unless an option assigns a severity.
ADVICE = ("virtual-arch-lowered", "kernels-removed", "host-differs")

# Warnings that -Werror makes errors only if an option assigns a severity: the code is correct, and
# nvlink links it, too.
NEVER_ERRORS = (*ADVICE, "untimed-code")

# Warnings that nvlink prints even with -w.
SHOWN_WITH_W = (*DROPPED_AS_INFOS, *DROPPED_BY_NVLINK, "library-skipped")
