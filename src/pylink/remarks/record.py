"""One remark: what a pass of the link did, or did not do, to one function or section, and why.

A pass builds it piece by piece; the pieces joined are the message::

    Remark(PASSED, "merc-dedup", "SectionFolded", ".text.k", file="a.cubin", hotness=512)
        .text("folded ").arg("Bytes", 512).text(" bytes into '").arg("Reference", "b.cubin")
        .text("'")

The model is LLVM's, so that its tools read what comes of it.
"""

from __future__ import annotations

from collections.abc import Iterable

# Kinds, numbered as in LLVM's bitstream.
PASSED = 1
MISSED = 2
ANALYSIS = 3
ANALYSIS_FP_COMMUTE = 4
ANALYSIS_ALIASING = 5
FAILURE = 6

# The tag of each kind in YAML, without the `!`; there is no kind 0.
TAGS = (
    "",
    "Passed",
    "Missed",
    "Analysis",
    "AnalysisFPCommute",
    "AnalysisAliasing",
    "Failure",
)
KINDS = {tag: kind for kind, tag in enumerate(TAGS) if tag}

# The key of a piece of the message that is text and no argument.
TEXT = "String"

# Key, value, and the place the value tells of: file, line and column; None for no place.
Arg = tuple[str, str, str | None, int, int]


class Remark:
    """What `pass_name` did or did not do (`kind`), called `name`, to `function`.

    `function` is the function, variable or section concerned. `file`, `line` and `column` are its
    place, 1-based, 0 where unknown; no file, no place. `hotness` is the number of bytes that the
    decision concerns. `args` are the pieces of the message, the values in text form. Pass, name,
    function and keys may not be empty: no reader takes such remarks.
    """

    __slots__ = (
        "args",
        "column",
        "file",
        "function",
        "hotness",
        "kind",
        "line",
        "name",
        "pass_name",
    )

    def __init__(
        self,
        kind: int,
        pass_name: str,
        name: str,
        function: str,
        *,
        file: str | None = None,
        line: int = 0,
        column: int = 0,
        hotness: int | None = None,
        args: Iterable[Arg] = (),
    ) -> None:
        if not (pass_name and name and function):
            raise ValueError("a remark needs a pass, a name and a function")
        self.kind = kind
        self.pass_name = pass_name
        self.name = name
        self.function = function
        self.file = file
        self.line = line
        self.column = column
        self.hotness = hotness
        self.args = list(args)

    def text(self, text: str) -> Remark:
        """Go on with text that means nothing by itself; the remark."""
        self.args.append((TEXT, text, None, 0, 0))
        return self

    def arg(
        self,
        key: str,
        value: str | int | float,
        *,
        file: str | None = None,
        line: int = 0,
        column: int = 0,
    ) -> Remark:
        """Go on with a named value, and the place it tells of; the remark."""
        if not key:
            raise ValueError("an argument needs a key")
        if value is True or value is False:
            value = "true" if value else "false"
        self.args.append((key, value if type(value) is str else str(value), file, line, column))
        return self

    @property
    def message(self) -> str:
        """The values of all arguments, joined."""
        return "".join([arg[1] for arg in self.args])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remark):
            return NotImplemented
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # a remark grows while it is built

    def __repr__(self) -> str:
        return f"<Remark {TAGS[self.kind]} {self.pass_name} {self.name}: {self.message}>"
