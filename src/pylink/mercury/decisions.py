"""What a link decided about the Mercury sections of its inputs, and why."""

from __future__ import annotations

from pylink.mercury.reasons import CODE_TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.mercury.folding import FoldResult
    from pylink.mercury.objects import MercuryObject
    from pylink.mercury.stages import Verdict

# The stage reported when a stronger copy rejects a fold: the last, which compares symbols.
STAGE_STRONGER = 3


class Decision:
    """What became of one file: whether it folds into `reference`, and why not.

    `verdict` is that of the file's last comparison, None for the first file; `stronger` names the
    function whose copy keeps an accepted file from folding. `file` and `reference` are numbers of
    files, `reference` is None where the sections were rejected.
    """

    __slots__ = ("file", "reference", "stronger", "verdict")

    def __init__(
        self, file: int, reference: int | None, verdict: Verdict | None, stronger: str | None
    ) -> None:
        self.file = file
        self.reference = reference
        self.verdict = verdict
        self.stronger = stronger

    @property
    def folds(self) -> bool:
        return self.reference is not None and self.stronger is None

    @property
    def code(self) -> int:
        if self.stronger is not None:
            return CODE_TARGETS
        return 0 if self.verdict is None else self.verdict.code

    @property
    def stage(self) -> int:
        """The stage that rejected, 0 for none."""
        if self.stronger is not None:
            return STAGE_STRONGER
        return 0 if self.verdict is None else self.verdict.stage or 0

    @property
    def section(self) -> str | None:
        """The section or relocation target that rejected, where a single one did."""
        return None if self.stronger is not None or self.verdict is None else self.verdict.entry

    @property
    def reason(self) -> str:
        if self.stronger is not None:
            return f"its copy of {self.stronger} counts, that of the reference does not"
        return "" if self.verdict is None else self.verdict.reason


class Folding:
    """What comparing the files of a link decided, for later questions.

    `items` are the vectors of the files that have such sections, `decisions` what became of each,
    `result` the comparisons. `refused` has number and reason of each file that cannot be read.
    """

    __slots__ = ("decisions", "items", "refused", "result")

    def __init__(
        self,
        items: list[MercuryObject],
        refused: list[tuple[int, str]],
        decisions: list[Decision],
        result: FoldResult,
    ) -> None:
        self.items = items
        self.refused = refused
        self.decisions = decisions
        self.result = result
