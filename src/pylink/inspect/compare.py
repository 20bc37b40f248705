"""Lists the differences of two cubins, each a `Difference` between headers, rows or bytes.

Everything counts: headers, the order of sections, string tables, padding, file offsets. Only what
`Ignore` names may differ. The likeliest causes come first, and what follows from another
difference is omitted: section numbers after a section that only one cubin has, symbol numbers
after a changed symbol table, offsets after a part of another size.
"""

from __future__ import annotations

from dataclasses import dataclass

from pylink.facts.elf import SECTION_TYPES
from pylink.inspect.contents import CAPSULE, SYMBOL_TABLES, find_reader, is_notes, notes
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
    """Return the differences, likely causes first, without most that follow from these.

    Empty if the cubins are equal, or differ only in what `ignore` names.
    """
    if first.data == second.data:
        return []
    return _Comparison(first, second, ignore).run()


class _Comparison:
    """Finds the differences of two cubins. `pairs` has their sections with equal `Section.key`."""

    def __init__(self, first: Image, second: Image, ignore: Ignore) -> None:
        self.first, self.second, self.ignore = first, second, ignore
        by_key = {section.key: section for section in second.sections}
        self.pairs = [(s, by_key[s.key]) for s in first.sections if s.key in by_key]
        # True if equal section numbers may mean different sections in the two cubins.
        self.moved = [s.key for s in first.sections] != [s.key for s in second.sections]
        # True if equal numbers of symbols, or offsets of strings, may mean different ones.
        self.renumbered = False

    def run(self) -> list[Difference]:
        """Return what `differences` returns, for cubins that are not equal byte by byte."""
        differing = self._compare_section_lists()
        tables = [pair for pair in self.pairs if pair[0].name in TABLES]
        for pair in tables:
            changes = self._compare_contents(*pair)
            self.renumbered |= bool(changes)
            differing += changes
        differing += self._compare_elf_headers()
        for pair in self.pairs:
            differing += self._compare_section_headers(*pair)
        for pair in self.pairs:
            if pair not in tables:
                differing += self._compare_contents(*pair)
        return differing + self._compare_placement()

    def _compare_section_lists(self) -> list[Difference]:
        """Return sections that only one cubin has, and the first place where the order differs."""
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
        for (name, _), (other_name, _) in zip(*orders, strict=True):
            if name != other_name:
                note = "sections in another order"
                differing.append(Difference("section", "section list", "", name, other_name, note))
                break
        return differing

    def _compare_elf_headers(self) -> list[Difference]:
        """Return the fields of the ELF headers that differ."""
        # `_compare_placement` compares the file offsets.
        skipped = {"shoff", "phoff"} | ({"shnum"} if self.moved else set())
        first, second = _header_numbers(self.first), _header_numbers(self.second)
        return [
            number_difference("header", "ELF header", f" e_{field}", value, second[field])
            for field, value in first.items()
            if field not in skipped and value != second[field]
        ]

    def _compare_section_headers(self, first: Section, second: Section) -> list[Difference]:
        """Return fields of two section headers that differ, unless other differences cause that."""
        fields = ["type", "flags", "addr", "link", "info", "align", "entsize"]
        if not self.moved and not self.renumbered:
            fields.insert(0, "name_offset")
        if not first.file_size and not second.file_size:
            fields.append("size")  # differences of contents say more than their size
        differing = []
        for field in fields:
            value, other = getattr(first, field), getattr(second, field)
            is_symbol_table = first.name.endswith("symtab")
            if value == other or (is_symbol_table and field == "info" and self.renumbered):
                continue
            note = ""
            if field == "type":
                note = f"{SECTION_TYPES.get(value, '?')}, {SECTION_TYPES.get(other, '?')}"
            if field in ("link", "info") and not is_symbol_table:
                titles = (
                    _title_of_reference(self.first, first, field),
                    _title_of_reference(self.second, second, field),
                )
                if (self.moved or self.renumbered) and titles[0] == titles[1]:
                    continue
                note = ", ".join(titles)
            label = " sh_name" if field == "name_offset" else f" sh_{field}"
            differing.append(number_difference("section", first.name, label, value, other, note))
        return differing

    def _compare_contents(self, first: Section, second: Section) -> list[Difference]:
        """Return the differences of two sections' contents: of rows, or else of bytes."""
        value, other = self.first.content(first), self.second.content(second)
        if self.ignore.tool_note and first.name == TOOL_NOTE:
            value, other = without_first_note(value), without_first_note(other)
        if self.ignore.scoreboards and first.name.startswith(".text."):
            value, other = without_scoreboards(value), without_scoreboards(other)
        if self.moved and first.name.startswith(CAPSULE):
            value, other = value[2:], other[2:]  # without the number of the .text section
        if value == other:
            return []
        if find_reader(first) is None:
            return [bytes_difference(first, value, other)]
        try:
            rows = self._read_rows(self.first, first), self._read_rows(self.second, second)
        except MalformedCubin as problem:
            return [Difference("section", first.name, "", None, None, f"unreadable: {problem}")]
        differing = compare_rows(first.name, *rows)
        # Rows have names instead of numbers. So if symbols are renumbered, bytes of equal rows may
        # differ, except in notes.
        if not differing and not (self.renumbered and not is_notes(first)):
            differing = [bytes_difference(first, value, other)]
        return differing

    def _read_rows(self, image: Image, section: Section) -> list[Row]:
        """Return the rows of a section, without those of the tool's note if that is ignored."""
        read = find_reader(section)
        rows = list(read(image, section)) if read else []
        if self.ignore.tool_note and section.name == TOOL_NOTE:
            field_count = sum(len(note.fields) for note in notes(image, section)[:1])
            return rows[field_count:]
        return rows

    def _compare_placement(self) -> list[Difference]:
        """Return differences of file offsets; none if other differences explain them."""
        if self.moved:
            return []
        for section, other in self.pairs:
            is_ignored = self.ignore.tool_note and section.name == TOOL_NOTE
            if section.size != other.size and not is_ignored:
                return []
        return placement_differences(self.first, self.second, tool_note=self.ignore.tool_note)


def _header_numbers(image: Image) -> dict[str, int]:
    """Return the fields of the ELF header, by name; e_ident comes last, as a number."""
    numbers = image.header._asdict()
    numbers["ident"] = int.from_bytes(numbers.pop("ident"), "big")
    return numbers


def _describe(section: Section) -> str:
    """Return the type and the size of a section as text."""
    kind = SECTION_TYPES.get(section.type, f"type {section.type:#x}")
    return f"{kind}, {section.size:#x} bytes"


def _title_of_reference(image: Image, section: Section, field: str) -> str:
    """Return the name of the symbol or section that `field` (link or info) of a section means."""
    value: int = getattr(section, field)
    if field == "info" and section.name.startswith((".text.", CAPSULE)):
        # Before sm_90, the upper 8 bits are the register count.
        return image.symbol_name(value & 0xFFFFFF, section)
    return image.section_name(value)
