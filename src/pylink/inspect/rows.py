"""The entries of sections: one frozen row class for each kind of entry.

`kind` names the entry in reports. Entries of two cubins that have equal `key` are compared. `str()`
returns the entry in one line. A `Note` and a `Capsule` are not rows: they hold what a whole note or
section says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Row:
    """An entry of a section."""

    kind: ClassVar[str] = "entry"

    @property
    def key(self) -> str:
        """The text that entries of two cubins must share to be compared."""
        return str(self)

    def where(self, index: int) -> str:
        """Return the place of the entry in its section, written after the section's name."""
        return f"[{index}]"


@dataclass(frozen=True)
class Text(Row):
    """A string of a string table."""

    kind: ClassVar[str] = "string"
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Symbol(Row):
    """A symbol, with names for the numbers of its fields; `other` are the bits of st_other."""

    kind: ClassVar[str] = "symbol"
    name: str
    type: str
    binding: str
    visibility: str
    other: tuple[str, ...]
    section: str
    value: int
    size: int

    @property
    def key(self) -> str:
        return self.name

    @property
    def place(self) -> str:
        """The section's name, without the symbol's name at its end."""
        return self.section.removesuffix(self.name).removesuffix(".")

    @property
    def marks(self) -> str:
        """The visibility, unless it is the default, and the other bits of st_other."""
        visibility = () if self.visibility == "DEFAULT" else (self.visibility,)
        return " ".join((*visibility, *self.other))

    def __str__(self) -> str:
        return (
            f"{self.name}: {' '.join(filter(None, (self.binding, self.type, self.marks)))}"
            f" in {self.section} value {self.value:#x} size {self.size:#x}"
        )


@dataclass(frozen=True)
class Relocation(Row):
    """A relocation; `addend` is None in a REL section, since the patched field holds it."""

    kind: ClassVar[str] = "relocation"
    offset: int
    type: int
    type_name: str
    symbol: str
    addend: int | None

    @property
    def key(self) -> str:
        return f"{self.offset:#x}"

    @property
    def target(self) -> str:
        """The symbol, and the addend unless it is 0 or None: `f + 0x10`."""
        if not self.addend:
            return self.symbol
        return f"{self.symbol} {'-' if self.addend < 0 else '+'} {abs(self.addend):#x}"

    def __str__(self) -> str:
        return f"{self.offset:#x} {self.type_name} {self.target}"


@dataclass(frozen=True)
class Record(Row):
    """A record of .nv.info or .nv.compat: `value` is for JSON, `text` for people.

    `attribute` is the name of attribute `number`. `format` is NVAL, BVAL, HVAL or SVAL. `symbol` is
    the function that a size belongs to, or empty.
    """

    kind: ClassVar[str] = "record"
    attribute: str
    number: int
    format: str
    value: object
    text: str
    symbol: str = ""

    @property
    def key(self) -> str:
        return f"{self.attribute} {self.symbol}"

    def __str__(self) -> str:
        form = "" if self.format == "SVAL" else f" ({self.format})"
        return f"{self.attribute}{form} {self.text}".rstrip()


@dataclass(frozen=True)
class Call(Row):
    """A row of .nv.callgraph: in block -1, `first` calls `second`.

    `contents.BLOCKS` says what a row of each block means. `first` is a function; `second` is
    one, too, or in blocks -2 and -3 a prototype. Both are empty in the row that begins a block.
    """

    kind: ClassVar[str] = "call"
    block: int
    first: str
    second: str

    def __str__(self) -> str:
        if not self.first:
            return f"block {self.block}"
        return f"{self.first} -> {self.second}"


@dataclass(frozen=True)
class Prototype(Row):
    """A row of .nv.prototype: a function, and a string for its result and parameters."""

    kind: ClassVar[str] = "prototype"
    function: str
    prototype: str

    @property
    def key(self) -> str:
        return self.function

    def __str__(self) -> str:
        return f"{self.function} {self.prototype}"


@dataclass(frozen=True)
class NoteField(Row):
    """One field of a note; a note of unknown kind has one field with all its bytes."""

    kind: ClassVar[str] = "note"
    name: str
    value: str

    @property
    def key(self) -> str:
        return self.name

    def where(self, index: int) -> str:
        """Return the place for a message: a field of a note is found by its name, not by index."""
        return f" {self.name}"

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Note:
    """A note; `vendor` is its name in ELF's terms."""

    vendor: str
    type: int
    fields: tuple[NoteField, ...]


@dataclass(frozen=True)
class Capsule:
    """A mercury capsule: the portable form of a function's code.

    `code` is the name of the code section, whose number is the first 16-bit word of the capsule.
    """

    function: str
    size: int
    code: str
