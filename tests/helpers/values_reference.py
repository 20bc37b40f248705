"""A naive reference of resolved relocations: S, A, and the field in the image.

Fields are those of pylink/facts/relocations.py. S is the symbol's offset in its section. Its other
meanings are in docs/format-notes.md (-r, undefined variables) and
docs/format-notes/shared-memory.md (extern arrays).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.facts.relocations import (
    MERCURY_CODE_OFFSET32,
    MERCURY_DATA,
    MERCURY_TWINS,
    RELOCATIONS,
    Relocation,
)

BY_NAME = {row.name: row for row in RELOCATIONS}
MERCURY = 0x10000  # the first number of a mercury relocation type
ALL_ONES = 2**64 - 1


@dataclass
class Symbol:
    """A symbol.

    `bank` is that of its section, None without one. `gone`: removed, but still named.
    """

    kind: str  # "function", "global", "constant", "shared", "array", "size"
    value: int
    bank: int | None = None
    gone: bool = False


@dataclass
class Place:
    """A section of the output, which begins at `start`; `variables`: it contains variables."""

    start: int
    size: int = 0
    variables: bool = False
    code: bool = False
    shares_bytes: bool = False  # whether its bytes are those of its twin


@dataclass
class Entry:
    """A relocation that the link resolves, at `offset` bytes in `place`.

    `piece` is where the bytes of the input begin to which a section symbol refers. `implicit` says
    that the field contains the addend, and `zero` that the symbol counts as 0.
    """

    type: int
    place: Place
    offset: int
    addend: int = 0
    symbol: Symbol | None = None
    piece: int | None = None
    array: int | None = None  # address of the extern arrays of the function that contains it
    implicit: bool = False
    zero: bool = False


@dataclass
class Image:
    """The bytes of the output, and the addresses of its extern shared arrays."""

    data: bytearray
    arrays_have_addresses: bool = False  # -g
    addresses: dict[int, int] = field(default_factory=dict)  # by id of the array's symbol


def field_of(number: int) -> Relocation:
    """Return the row of a relocation type; for a mercury type in data, that of its plain form."""
    if number < MERCURY:
        return RELOCATIONS[number]
    if number == MERCURY_CODE_OFFSET32:
        return BY_NAME["32"]
    row = BY_NAME[MERCURY_TWINS[number]]
    assert number in MERCURY_DATA or row.clear
    return row


def value_of(entry: Entry, image: Image) -> int:
    """Return S + A, or only S if the field contains A."""
    symbol = entry.symbol
    if entry.piece is not None:
        return entry.piece + entry.addend
    if symbol is None:
        return entry.addend
    if entry.zero:
        return entry.addend if symbol.kind in ("shared", "array") else 0
    if symbol.kind == "size":
        return symbol.value
    if symbol.kind == "array":
        if image.arrays_have_addresses:
            return image.addresses[id(symbol)] + entry.addend
        return (ALL_ONES if entry.array is None else entry.array) + entry.addend
    return (ALL_ONES if symbol.gone else symbol.value) + entry.addend


def bank_of(entry: Entry) -> int:
    """Return the bank of a symbol; 2 for constants of a function that no kernel reaches, too."""
    symbol = entry.symbol
    if symbol is None or entry.zero or entry.piece is not None or symbol.kind in ("array", "size"):
        return 0
    return symbol.bank if symbol.bank is not None else 2 * (symbol.kind == "constant")


def bits_of(form: str, value: int, bank: int) -> int:
    """Return the bits of a field by one of the formulas of FORMS."""
    match form:
        case "WHOLE":
            return value
        case "HIGH":
            return value >> 32
        case "WORDS":
            return value >> 2
        case "BANK14" | "SPLIT19":
            return bank << 14 | value >> 2 & 0x3FFF
        case "BANK16":
            return bank << 16 | value & 0xFFFF
        case "BANK17":
            return bank << 17 | value & 0x1FFFF
    assert form == "ZERO"
    return 0


# Forms of whole addresses, and the forms of their low halves.
ADDRESSES = {"64": "32", "UNUSED_CLEAR64": "UNUSED_CLEAR32"}


def is_crowded(entry: Entry, around: list[Entry]) -> bool:
    """Return whether a variable has room only for the low half of an address.

    `around` are the entries of its neighbors.
    """
    place, end = entry.place, entry.offset + 4
    return place.variables and (
        place.size - entry.offset < 8
        or any(other.place is place and other.offset == end for other in around)
    )


def apply_reference(image: Image, entries: list[Entry]) -> None:
    """Apply entries one by one.

    Mercury types are not applied in code, and in bytes that a section shares with its plain form.
    """
    for number, entry in enumerate(entries):
        if entry.type >= MERCURY and (entry.place.code or entry.place.shares_bytes):
            continue
        row, at = field_of(entry.type), entry.place.start + entry.offset
        value = value_of(entry, image) & ALL_ONES
        if row.form == "BYTE":
            image.data[at] = value >> row.first & 0xFF
            continue
        if row.form == "NOTHING":
            continue
        if row.name in ADDRESSES and is_crowded(entry, entries[max(number - 1, 0) : number + 2]):
            row = BY_NAME[ADDRESSES[row.name]]
        word = int.from_bytes(image.data[at : at + 8], "little")
        if entry.implicit:
            held = word >> row.first & 2**row.bits - 1
            value = value + (4 * held if row.form == "WORDS" else held) & ALL_ONES
        bits = bits_of(row.form, value, bank_of(entry)) & 2**row.bits - 1
        if row.form == "SPLIT19":  # bit 18 at 26 and the rest at 28
            places = {n: 28 + n for n in range(18)} | {18: 26}
        else:
            places = {n: row.first + n for n in range(row.bits)}
        for bit, to in places.items():
            word = word & ~(1 << to) | (bits >> bit & 1) << to
        image.data[at : at + 8] = word.to_bytes(8, "little")
