"""Remarks, and their encoding as blocks of an LLVM bitstream."""

from collections.abc import Iterable
from typing import final

# Key, value, and the place of the value: file (None without a place), line and column.
Arg = tuple[str, str, str | None, int, int]

@final
class Remark:
    """A remark: the decision `name`, of a `kind`, that the pass `pass_name` made on `function`.

    `function` is the name of a function, variable or section. `file`, `line` and `column` say where
    it is in the source; lines and columns count from 1, and 0 is unknown. `hotness` is the number
    of bytes that the decision concerns. `args` are the parts of the message, with values as text.
    Pass, name, function and keys must not be empty, since readers reject such remarks. Lines and
    columns are limited to 32 bits, hotness to 64.
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
        """Append text without a key to the message; returns the remark."""

    def arg(
        self,
        key: str,
        value: str | float,
        *,
        file: str | None = None,
        line: int = 0,
        column: int = 0,
    ) -> Remark:
        """Append a value with a key, and its place, to the message; returns the remark."""

    @property
    def message(self) -> str:
        """The values of all arguments, joined."""

def encode(remarks: list[Remark], strings: dict[str, int]) -> bytes:
    """Encode `remarks` as blocks of whole 32-bit words.

    `strings` is the string table: it maps each string to its number. New strings are added in the
    order in which LLVM's writer adds them. TypeError for other objects than remarks.
    """
