"""Remarks, and their encoding as blocks of an LLVM bitstream."""

from collections.abc import Iterable
from typing import final

# Key, value, and the place of the value: file (None without a place), line and column.
Arg = tuple[str, str, str | None, int, int]

@final
class Remark:
    """A remark: the decision `name`, of a `kind`, that the pass `pass_name` made on `function`.

    `kind` is a number from 1 to 6, as in LLVM's bitstream (`pylink.remarks.record`). `function` is
    the name of a function, variable or section. `file`, `line` and `column` say where it is in the
    source; lines and columns count from 1, and 0 is unknown. `hotness` is the number of bytes that
    the decision concerns. `args` are the parts of the message, with values as text. Pass, name,
    function and keys must not be empty, since readers reject such remarks. Larger lines and columns
    become the largest number of 32 bits, a larger hotness that of 64. `ValueError` for another kind
    and for an empty pass, name or function.
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
