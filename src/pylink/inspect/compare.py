"""Lists the differences of two cubins as records of `rows`.

Everything counts: headers, the order of sections, string tables, padding, file offsets. Only what
`Ignore` names may differ. The likeliest causes come first, and what follows from another
difference is omitted: section numbers after a section that only one cubin has, symbol numbers
after a changed symbol table, offsets after a part of another size.
"""

from __future__ import annotations

from dataclasses import dataclass

from pylink.facts.elf import SECTION_TYPES
from pylink.inspect.contents import CAPSULE, SYMBOL_TABLES, is_notes, notes, reader
from pylink.inspect.difference import Difference, compare_rows, number_difference
from pylink.inspect.image import Image, MalformedCubin, Section
from pylink.inspect.layout import TOOL_NOTE
from pylink.inspect.placement import placement_differences
from pylink.inspect.rawbytes import bytes_difference, without_first_note, without_scoreboards
from pylink.inspect.rows import Row

TABLES = (".shstrtab", ".strtab", *SYMBOL_TABLES)


@dataclass(frozen=True)
class Ignore:
    """Differences to ignore.

    tool_note: the first note of `.note.nv.tkinfo`, the linker's own, and the file offsets that its
    size moves. scoreboards: the scoreboard fields of every instruction in `.text.*`.
    """

    tool_note: bool = False
    scoreboards: bool = False


def differences(first: Image, second: Image, ignore: Ignore) -> list[Difference]:
    """All differences, causes before their effects; empty when the cubins are equal."""
    if first.data == second.data:
        return []
    return _Comparison(first, second, ignore).run()


class _Comparison:
    def __init__(self, first: Image, second: Image, ignore: Ignore) -> None:
        self.first, self.second, self.ignore = first, second, ignore
        by_key = {section.key: section for section in second.sections}
        self.pairs = [(s, by_key[s.key]) for s in first.sections if s.key in by_key]
        # Whether section numbers, and numbers of symbols and strings, stand for something else.
        self.moved = [s.key for s in first.sections] != [s.key for s in second.sections]
        self.renumbered = False

    def run(self) -> list[Difference]:
        differing = self._section_list()
        tables = [pair for pair in self.pairs if pair[0].name in TABLES]
        for pair in tables:
            changes = self._content(*pair)
            self.renumbered |= bool(changes)
            differing += changes
        differing += self._elf_header()
        for pair in self.pairs:
            differing += self._section_header(*pair)
        for pair in self.pairs:
            if pair not in tables:
                differing += self._content(*pair)
        return differing + self._placement()

    def _section_list(self) -> list[Difference]:
        if not self.moved:
            return []
        first_sections = {s.key: s for s in self.first.sections}
        second_sections = {s.key: s for s in self.second.sections}
        differing = [
            Difference("section", section.name, "", _describe(section), None)
            for key, section in first_sections.items()
            if key not in second_sections
        ]
        differing += [
            Difference("section", section.name, "", None, _describe(section))
            for key, section in second_sections.items()
            if key not in first_sections
        ]
        orders = (
            [key for key in first_sections if key in second_sections],
            [key for key in second_sections if key in first_sections],
        )
        for (value, _), (other, _) in zip(*orders, strict=True):
            if value != other:
                note = "sections in another order"
                differing.append(Difference("section", "section list", "", value, other, note))
                break
        return differing

    def _elf_header(self) -> list[Difference]:
        # The file offsets are compared with the layout.
        skipped = {"shoff", "phoff"} | ({"shnum"} if self.moved else set())
        return [
            number_difference(
                "header", "ELF header", f" e_{field}", value, self.second.header[field]
            )
            for field, value in self.first.header.items()
            if field not in skipped and value != self.second.header[field]
        ]

    def _section_header(self, a: Section, b: Section) -> list[Difference]:
        fields = ["type", "flags", "addr", "link", "info", "align", "entsize"]
        if not self.moved and not self.renumbered:
            fields.insert(0, "name_at")
        if not a.file_size and not b.file_size:
            fields.append("size")  # otherwise the contents tell more
        differing = []
        for field in fields:
            value, other = getattr(a, field), getattr(b, field)
            table = a.name.endswith("symtab")
            if value == other or (table and field == "info" and self.renumbered):
                continue
            note = ""
            if field == "type":
                note = f"{SECTION_TYPES.get(value, '?')}, {SECTION_TYPES.get(other, '?')}"
            if field in ("link", "info") and not table:
                titles = _refers(self.first, a, field), _refers(self.second, b, field)
                if (self.moved or self.renumbered) and titles[0] == titles[1]:
                    continue
                note = ", ".join(titles)
            label = " sh_name" if field == "name_at" else f" sh_{field}"
            differing.append(number_difference("section", a.name, label, value, other, note))
        return differing

    def _content(self, a: Section, b: Section) -> list[Difference]:
        value, other = self.first.content(a), self.second.content(b)
        if self.ignore.tool_note and a.name == TOOL_NOTE:
            value, other = without_first_note(value), without_first_note(other)
        if self.ignore.scoreboards and a.name.startswith(".text."):
            value, other = without_scoreboards(value), without_scoreboards(other)
        if self.moved and a.name.startswith(CAPSULE):
            value, other = value[2:], other[2:]  # the number of the .text section
        if value == other:
            return []
        read = reader(a)
        if read is None:
            return [bytes_difference(a, value, other)]
        try:
            rows = self._rows(self.first, a), self._rows(self.second, b)
        except MalformedCubin as problem:
            return [Difference("section", a.name, "", None, None, f"unreadable: {problem}")]
        differing = compare_rows(a.name, *rows)
        if not differing and not (self.renumbered and not is_notes(a)):
            differing = [bytes_difference(a, value, other)]
        return differing

    def _rows(self, image: Image, section: Section) -> list[Row]:
        read = reader(section)
        rows = list(read(image, section)) if read else []
        if self.ignore.tool_note and section.name == TOOL_NOTE:
            note_size = sum(len(note.fields) for note in notes(image, section)[:1])
            return rows[note_size:]
        return rows

    def _placement(self) -> list[Difference]:
        if self.moved:
            return []
        for a, b in self.pairs:
            if a.size != b.size and not (self.ignore.tool_note and a.name == TOOL_NOTE):
                return []
        return placement_differences(self.first, self.second, tool_note=self.ignore.tool_note)


def _describe(section: Section) -> str:
    kind = SECTION_TYPES.get(section.type, f"type {section.type:#x}")
    return f"{kind}, {section.size:#x} bytes"


def _refers(image: Image, section: Section, field: str) -> str:
    value: int = getattr(section, field)
    if field == "info" and section.name.startswith((".text.", CAPSULE)):
        # Before sm_90 the register count stands above the symbol.
        return image.symbol_name(value & 0xFFFFFF, section)
    return image.section_name(value)
