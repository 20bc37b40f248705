"""Resolved relocations, from the entry to the bytes of the image, against plain arithmetic."""

from __future__ import annotations

from random import Random

import pytest
from helpers.contents import patched
from helpers.tables import merged, objects, table
from helpers.values_reference import (
    MERCURY,
    Entry,
    Image,
    Place,
    Symbol,
    apply_reference,
    field_of,
)

from pylink._native import relocs
from pylink._native.results import PlacedTables
from pylink._native.tables import Entities, FilePlaces, Fixups, Marks, Numbers, Outs, Values
from pylink.facts import relocations, sectionkinds
from pylink.facts.rownumbers import ContentsFrom, EntityFlag, EntityKind, FixupFlag, LinkMode

KINDS = {
    "function": EntityKind.FUNC,
    "global": EntityKind.GLOBAL,
    "constant": EntityKind.CONSTANT,
    "shared": EntityKind.SHARED,
    "array": EntityKind.SHARED,
    "size": EntityKind.CONST0_SIZE,
}
PLAIN = tuple(row.number for row in relocations.RELOCATIONS if row.form != "NONE")
WITHOUT_FIELD = tuple(row.number for row in relocations.RELOCATIONS if row.form == "NONE")
# Not those of bytes of functions' addresses, which the loader fills.
FILLED = sorted(number for number in relocations.MERCURY_DATA if field_of(number).form != "NONE")
IN_DATA = (*FILLED, relocations.MERCURY_CODE_OFFSET32, 0x1000E)
IN_PLACE = ("WHOLE", "WORDS")  # forms of which fields hold addends


class Link:
    """A link whose sections, symbols and relocations are drawn; `entries` are in input order."""

    def __init__(self, rng: Random, types: tuple[int, ...]) -> None:
        self.rng = rng
        sizes = [rng.randrange(40, 300) for _ in range(4)]
        starts = [64 + sum(sizes[:at]) for at in range(4)]
        codes = [True, False, False, True]
        self.places = [
            Place(starts[at], sizes[at], at == 1, code=codes[at], shares_bytes=at == 2)
            for at in range(4)
        ]
        self.banks = [rng.randrange(18) for _ in self.places]
        self.symbols = [self.symbol() for _ in range(12)]
        self.pieces = [rng.randrange(0x10000) for _ in range(3)]
        self.arrays = [rng.choice((0, 0x400, rng.getrandbits(20))) for _ in self.symbols]
        self.image = Image(
            bytearray(rng.randbytes(64 + sum(sizes) + 8)),
            arrays_have_addresses=rng.random() < 0.3,
            addresses={id(s): at for s, at in zip(self.symbols, self.arrays, strict=True)},
        )
        self.entries: list[Entry] = []
        self.rows: list[dict[str, int]] = []
        for _ in range(80):
            self.draw(sizes, rng.choice(types))

    def symbol(self) -> Symbol:
        rng = self.rng
        kind = rng.choice(list(KINDS))
        value = rng.choice((0, 8, rng.getrandbits(16), rng.getrandbits(64), 2**64 - 1))
        bank = rng.choice((None, *self.banks))
        return Symbol(kind, value, bank, gone=kind == "global" and rng.random() < 0.3)

    def draw(self, sizes: list[int], number: int) -> None:
        rng = self.rng
        out = rng.randrange(len(sizes))
        row = field_of(number)
        target = rng.choice(("symbol", "symbol", "symbol", "section", "nothing"))
        symbol = rng.randrange(12) if target == "symbol" else -1
        piece = rng.randrange(3) if target == "section" else -1
        function = rng.choice((-1, rng.randrange(12)))
        zero = symbol >= 0 and not row.clear and rng.random() < 0.15
        implicit = row.form in IN_PLACE and not zero and rng.random() < 0.4
        implicit = implicit and not (symbol >= 0 and self.symbols[symbol].kind == "size")
        addend = 0 if implicit else rng.choice((0, 4, -8, rng.getrandbits(40), -0x8000))
        offset = rng.randrange(sizes[out])
        before = self.entries[-1] if self.entries else None
        if before and before.place is self.places[out] and rng.random() < 0.5:
            offset = max(before.offset - 4, 0)  # as ptxas has addresses in 32-bit variables
        self.entries.append(
            Entry(
                number,
                self.places[out],
                offset,
                addend,
                self.symbols[symbol] if symbol >= 0 else None,
                self.pieces[piece] if piece >= 0 else None,
                self.arrays[function] if function >= 0 else None,
                implicit,
                zero,
            )
        )
        how = FixupFlag.REL * implicit | FixupFlag.CLEAR * row.clear | FixupFlag.ZERO * zero
        how |= FixupFlag.MERC * (number >= MERCURY)
        columns = {"offset": offset, "addend": addend, "type": number, "out": out, "how": how}
        self.rows.append(
            {**columns, "entity": symbol, "section": piece, "function": function, "listed_in": -1}
        )

    def resolve(self) -> tuple[int, bytes]:
        """The first row that the kernels refuse, or -1, and the image that they make."""
        homes = [self.banks.index(s.bank) if s.bank is not None else -1 for s in self.symbols]
        whole = merged(
            objects(mode=LinkMode.DEBUG * self.image.arrays_have_addresses),
            entities=table(
                Entities,
                [
                    {"kind": KINDS[s.kind], "flags": EntityFlag.UNSIZED * (s.kind == "array")}
                    for s in self.symbols
                ],
            ),
            fixups=table(Fixups, self.rows),
            base=table(Values, self.pieces),
        )
        outs = [
            {"kind": kind_of(place), "bank": bank, "size": place.size}
            for place, bank in zip(self.places, self.banks, strict=True)
        ]
        placed = PlacedTables(
            whole,
            outs=table(Outs, outs),
            places=table(
                FilePlaces,
                [
                    {"offset": p.start, "contents": ContentsFrom.TWIN * p.shares_bytes}
                    for p in self.places
                ],
            ),
            values=table(Values, [s.value for s in self.symbols]),
            homes=table(Numbers, homes),
            dynamic=table(Values, self.arrays),
            lost=table(Marks, [s.gone for s in self.symbols]),
        )
        return patched(bytes(self.image.data), relocs.resolve_values(placed))


def kind_of(place: Place) -> int:
    if place.code:
        return sectionkinds.TEXT
    return sectionkinds.GLOBAL_INIT if place.variables else sectionkinds.DEBUG


@pytest.mark.parametrize("types", [PLAIN, IN_DATA, PLAIN + IN_DATA])
def test_images_agree_with_reference(types: tuple[int, ...]) -> None:
    changed = 0
    for seed in range(120):
        link = Link(Random(seed), types)
        (bad, got), before = link.resolve(), bytes(link.image.data)
        apply_reference(link.image, link.entries)
        assert (bad, got) == (-1, bytes(link.image.data)), seed
        changed += got != before
    assert changed > 100


@pytest.mark.parametrize("number", PLAIN)
def test_each_type_agrees_with_reference(number: int) -> None:
    for seed in range(10):
        link = Link(Random(seed), (number,))
        bad, got = link.resolve()
        apply_reference(link.image, link.entries)
        assert (bad, got) == (-1, bytes(link.image.data)), seed


@pytest.mark.parametrize("number", WITHOUT_FIELD)
def test_a_type_without_a_field_is_refused(number: int) -> None:
    link = Link(Random(number), (1,))
    link.rows[7]["type"] = number
    assert link.resolve() == (7, bytes(link.image.data))
