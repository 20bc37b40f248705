"""A link's decisions on folding the Mercury sections of its inputs, with reasons."""

from __future__ import annotations

from pylink.mercury.reasons import CODE_TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.mercury.folding import FoldResult
    from pylink.mercury.objects import MercuryObject
    from pylink.mercury.stages import Verdict

# The stage that is reported if a file stays because its copy of a function wins over the
# reference's: the last one, which compares symbols.
STAGE_STRONGER = 3


class Decision:
    """The decision on one file: whether `reference`'s Mercury sections replace its own (it folds).

    `file` and `reference` are numbers of files; `reference` is None if no other file accepted this
    one. `verdict` is the result of the file's last comparison, None for the first file. If a file
    was accepted but stays, because its copy of a function wins over the reference's, `stronger`
    names that function.
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
        """Whether the file's sections are omitted, because the reference's replace them."""
        return self.reference is not None and self.stronger is None

    @property
    def code(self) -> int:
        """The code: 0 if accepted or uncompared; 17 contents, 19 headers, 18 relocations differ.

        18 also if the file's copy of a function wins.
        """
        if self.stronger is not None:
            return CODE_TARGETS
        return 0 if self.verdict is None else self.verdict.code

    @property
    def stage(self) -> int:
        """The stage that rejected: 1 contents, 2 headers, 3 relocations; 0 if none did."""
        if self.stronger is not None:
            return STAGE_STRONGER
        return 0 if self.verdict is None else self.verdict.stage or 0

    @property
    def section(self) -> str | None:
        """The section or relocation target that rejects the file; None if no single one does."""
        return None if self.stronger is not None or self.verdict is None else self.verdict.entry

    @property
    def reason(self) -> str:
        """The reason for the decision as text; empty if the file was not compared."""
        if self.stronger is not None:
            return f"its copy of {self.stronger} counts, that of the reference does not"
        return "" if self.verdict is None else self.verdict.reason


class Folding:
    """The comparisons of the Mercury sections of a link's files, and the decisions.

    `items` are the vectors of the files whose Mercury sections are compared. `decisions` has one
    decision for each of these files, and `result` has their comparisons. `refused` has the number
    of each file whose sections cannot be read, and the reason.
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
