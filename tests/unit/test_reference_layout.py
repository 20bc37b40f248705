"""Places of sections and program headers: the kernel against the rules of the file."""

from __future__ import annotations

from random import Random
from struct import Struct

import pytest
from helpers.layout_reference import FAMILY_C, File, Header, Section, place_reference
from helpers.tables import merged, objects, table

from pylink._native import layout
from pylink._native.results import PlacedTables
from pylink._native.tables import Blob, Indices, Numbers, Outs, OutSymbols, Spans
from pylink.facts import elf, sectionkinds
from pylink.facts.rownumbers import LinkMode
from pylink.facts.sectiontable import Kind, kinds

KINDS = {kind.number: kind for kind in kinds()}
PHDR = Struct("<IIQQQQQQ")
NAMES = b"\0.plain\0"
OLD_BANK3, OLD_POOL = b".rela.nv.constant.user", b".rela.nv.constant.optimizer.F"
TABLES = (sectionkinds.SHSTRTAB, sectionkinds.STRTAB, sectionkinds.SYMTAB)
# In the order of their classes.
DRAWN = (
    sectionkinds.DEBUG,
    sectionkinds.TKINFO,
    sectionkinds.INFO_FUNC,
    sectionkinds.CALLGRAPH,
    sectionkinds.CONSTANT,
    sectionkinds.CONSTANT_FUNC,
    sectionkinds.CONSTANT0,
    sectionkinds.TEXT,
    sectionkinds.GLOBAL_INIT,
    sectionkinds.GLOBAL,
    sectionkinds.SHARED,
)
ALIGNS = (0, 1, 1, 2, 4, 8, 16, 128, 4096)


class Draft:
    """Rows of the kernel's tables, and the same sections for the reference, in file order."""

    def __init__(self, rng: Random, family: int, *, executable: bool) -> None:
        self.rng, self.family, self.executable = rng, family, executable
        self.symbols = rng.randrange(5)
        self.strtab = b"\0" + OLD_BANK3 + b"\0" + OLD_POOL + b"\0" * rng.randrange(1, 9)
        self.outs: list[dict[str, int]] = []
        self.sections: list[Section] = []
        self.made: list[tuple[int, int]] = []  # rows whose contents the link makes, their size
        room = 0
        for number in TABLES:
            self.add(KINDS[number])
        for number in DRAWN:
            for _ in range(rng.choice((0, 0, 1, 2, 3))):
                room += self.draw(number)
        if family == FAMILY_C:
            self.sections[0].room, self.sections[1].room = 36, room
            self.twins()
        sizes = {
            sectionkinds.SHSTRTAB: len(self.shstrtab),
            sectionkinds.STRTAB: len(self.strtab),
            sectionkinds.SYMTAB: 24 * (self.symbols + 1),
        }
        for at, number in enumerate(TABLES):
            self.sections[at].size = sizes[number]

    @property
    def shstrtab(self) -> bytes:
        """A mercury section's name is written behind the others."""
        return NAMES + b"".join(
            KINDS[out["kind"]].names[0] + b"\0" for out in self.outs if out.get("twin", -1) >= 0
        )

    def add(self, kind: Kind, size: int = 0, **columns: int) -> int:
        align = kind.align or self.rng.choice(ALIGNS)
        row = {"kind": kind.number, "size": size, "align": align, "flags": kind.flags}
        self.outs.append({**row, **columns})
        self.sections.append(Section(size, align, kind.flags, kind.nobits))
        return len(self.outs) - 1

    def draw(self, number: int) -> int:
        """One section, with entries of relocations or not; the room that its new names take."""
        rng = self.rng
        bank = 3 if number == sectionkinds.CONSTANT else 2
        at = self.add(KINDS[number], rng.choice((0, 1, rng.randrange(300), 0x1234)), bank=bank)
        if rng.random() < 0.3 and not KINDS[number].nobits:
            self.outs[at]["size"] = rng.randrange(50)  # of no account
            self.made.append((at, self.sections[at].size))
        renamed = {sectionkinds.CONSTANT: OLD_BANK3, sectionkinds.CONSTANT_FUNC: OLD_POOL}
        old = renamed.get(number)
        if old is None:
            return 0
        self.outs[at]["symbol_name"] = self.strtab.index(old) + len(b".rela")
        # "measured with old names without NUL, filled with final ones with NUL"
        room = {OLD_BANK3: 3, OLD_POOL: 8}[old]
        if rng.random() < 0.5:
            entries = rng.randrange(4)
            self.outs[at]["rela"] = self.add(
                KINDS[sectionkinds.RELOC],
                size=0,
                count=entries,
                entsize=24,
                target=at,
                symbol_name=self.strtab.index(old),
            )
            self.sections[-1].size = 24 * entries
            room += len(old)
        return room

    def twins(self) -> None:
        """Mercury sections that share the bytes of their plain ones."""
        of = {
            sectionkinds.GLOBAL_INIT: sectionkinds.MERC_GLOBAL_INIT,
            sectionkinds.CONSTANT: sectionkinds.MERC_CONSTANT,
        }
        for plain, row in list(enumerate(self.outs)):
            if row["kind"] in of:
                kind = KINDS[of[row["kind"]]]
                self.add(kind, size=7, twin=plain)
                self.sections[-1].twin = plain
                self.sections[-1].size = self.sections[plain].size

    def place(self) -> tuple[list[int], File]:
        """Sizes and places as the kernel gives them, in file order; born in another order."""
        count = len(self.outs)
        born = self.rng.sample(range(count), count)  # by place in the file: the number of the row
        dead = {"kind": sectionkinds.TEXT, "size": 999, "align": 1}
        rows: list[dict[str, int]] = [dead] * (count + 1)
        for at, row in enumerate(self.outs):
            rows[born[at]] = {
                name: born[value] if name in ("rela", "target", "twin") else value
                for name, value in row.items()
            }
        whole = merged(
            objects(family=self.family, mode=LinkMode.RELOCATABLE * (not self.executable)),
            outs=table(Outs, rows),
            out_symbols=table(OutSymbols, [{}] * self.symbols),
        )
        whole.shstrtab, whole.strtab = Blob(NAMES), Blob(self.strtab)
        placed = PlacedTables(
            whole,
            outs=table(Outs, rows),
            section_order=table(Numbers, born),
            section_index=table(
                Indices, [born.index(i) + 1 if i in born else 0 for i in range(count + 1)]
            ),
            symbol_order=table(Numbers, range(self.symbols)),
        )
        placed.strtab = Blob(self.strtab)
        for at, size in self.made:
            placed.add(bytes(size), Spans.whole(born[at], size))
        layout.place(placed)
        assert placed.shstrtab.data == self.shstrtab
        headers = []
        for header in PHDR.iter_unpack(placed.phdrs):
            assert (header[3], header[4], header[7]) == (0, 0, 8)
            headers.append(Header(*header[:3], *header[5:7]))
        places = [placed.places[i] for i in born]
        file = File([place.offset for place in places], placed.table_offset, headers, placed.size)
        return [place.size for place in places], file


@pytest.mark.parametrize("executable", [False, True])
@pytest.mark.parametrize("family", [0, 1, 2])
def test_places_agree_with_reference(family: int, *, executable: bool) -> None:
    for seed in range(100):
        draft = Draft(Random(seed), family, executable=executable)
        sizes, file = draft.place()
        assert sizes == [section.size for section in draft.sections], seed
        assert file == place_reference(draft.sections, family, executable=executable), seed


def test_the_kinds_drawn_cover_both_sides_of_each_rule() -> None:
    drawn = [KINDS[number] for number in DRAWN]
    for bit in (elf.SHF_ALLOC, elf.SHF_WRITE, elf.SHF_EXECINSTR):
        assert {bool(kind.flags & bit) for kind in drawn} == {False, True}
    assert {kind.nobits for kind in drawn} == {False, True}
