"""Remarks, and what they are as blocks of an LLVM bitstream."""

from collections.abc import Iterable
from typing import final

# Key, value, and the place the value tells of: file, line and column; None for no place.
Arg = tuple[str, str, str | None, int, int]

@final
class Remark:
    """What `pass_name` did or did not do (`kind`), called `name`, to `function`.

    `function` is the function, variable or section concerned. `file`, `line` and `column` are its
    place, 1-based, 0 where unknown; no file, no place. `hotness` is the number of bytes that the
    decision concerns. `args` are the pieces of the message, the values in text form. Pass, name,
    function and keys may not be empty: no reader takes such remarks. Lines and columns that do not
    fit 32 bits, and hotness that does not fit 64, become the greatest number that does.
    """

    kind: int
    pass_name: str
    name: str
    function: str
    file: str | None
    line: int
    column: int
    hotness: int | None
    args: list[Arg]

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
    ) -> None: ...
    def text(self, text: str) -> Remark:
        """Go on with text that means nothing by itself; the remark."""

    def arg(
        self,
        key: str,
        value: str | float,
        *,
        file: str | None = None,
        line: int = 0,
        column: int = 0,
    ) -> Remark:
        """Go on with a named value, and the place it tells of; the remark."""

    @property
    def message(self) -> str:
        """The values of all arguments, joined."""

def encode(remarks: list[Remark], strings: dict[str, int]) -> bytes:
    """The blocks of `remarks`, one after the other: whole 32-bit words.

    `strings` is the string table, each string with its number; new ones are added in the order of
    LLVM's writer. TypeError for what is not a remark.
    """
