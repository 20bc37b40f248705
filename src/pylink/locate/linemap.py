"""The source lines of one cubin, from its `.debug_line` or `.nv_debug_line_sass`.

ptxas writes one sequence of rows for each function, and a relocation of its start address, whose
symbol gives the section of the code. Sequences are decoded on demand. `.debug_line` maps code to
CUDA source. `.nv_debug_line_sass` maps it to PTX, whose text is in `.nv_debug_ptx_txt.<number>`,
with a NUL after each line; it is used if a PTX file without `.loc` was compiled.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from io import BytesIO
from struct import unpack_from

from elftools.dwarf.lineprogram import LineProgram
from elftools.elf.elffile import ELFFile

from pylink.locate import LINE_SECTIONS
from pylink.locate.debugsections import (
    SET_ADDRESS,
    contents_of,
    find_sequences,
    read_debug_data,
    read_units,
)
from pylink.locate.inlining import Call, calls_of_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from elftools.dwarf.lineprogram import LineState

PTX_TEXT = ".nv_debug_ptx_txt"

# Most bytes of a .debug_info that is searched for the declaration of a variable: pyelftools would
# take seconds for a larger one.
_LARGEST_INFO = 1 << 21

# A declaration of a variable in PTX, up to its initializer; and a word in it, such as the name.
_PTX_VARIABLE = re.compile(rb"\s*(?:\.\w+ )*\.(?:global|const|shared) [^;=]*")
_WORD = re.compile(rb"[\w$]+")

# Largest line or column that counts; a larger one is replaced by 0. Damaged programs may have any
# number, and remarks have 31 bits for it.
_LARGEST_LINE = 0x7FFFFFFF

# Attributes with the mangled name of a variable.
_LINKAGE_NAMES = ("DW_AT_MIPS_linkage_name", "DW_AT_linkage_name")


class Frame:
    """A source line, counted from 1; line and column are 0 if unknown or out of range.

    `function` is the mangled name of the inlined function with the line, None without one or if
    unknown.
    `text` is the line itself if the cubin contains it; then `file` is the name of a section.
    """

    __slots__ = ("column", "file", "function", "line", "text")

    def __init__(
        self,
        file: str,
        line: int,
        column: int = 0,
        function: str | None = None,
        text: str | None = None,
    ) -> None:
        self.file = file
        self.line = line if 0 <= line <= _LARGEST_LINE else 0
        self.column = column if 0 <= column <= _LARGEST_LINE else 0
        self.function = function
        self.text = text


class LineMap:
    """The lines of one cubin; damaged debug data raises pyelftools' exceptions, of any type."""

    def __init__(self, contents: bytes) -> None:
        self._elf = ELFFile(BytesIO(contents))
        self._names = [name for name in LINE_SECTIONS if contents_of(self._elf, name)]
        self._programs: dict[str, LinePrograms] = {}  # by section, those that were read
        # By word of a declaration in PTX; None until a declaration is asked for.
        self._ptx_declarations: dict[bytes, Frame] | None = None

    def programs(self, name: str) -> LinePrograms:
        """Return the programs of a section, read on demand."""
        if name not in self._programs:
            self._programs[name] = LinePrograms(self._elf, name)
        return self._programs[name]

    def frames(self, section: int, offset: int) -> list[Frame]:
        """Return the lines of an offset in a section (index), the innermost inlined one first."""
        for name in self._names:
            frames = self.programs(name).frames(section, offset)
            if frames:
                return frames
        return []

    def frames_of_relocation(self, table: int, row: int) -> list[Frame]:
        """Return the lines of the field that relocation `row` of section number `table` patches."""
        section: Any = self._elf.get_section(table)
        return self.frames(section["sh_info"], section.get_relocation(row)["r_offset"])

    def declaration(self, name: str) -> Frame | None:
        """Return the declaration of a variable, by `.debug_info` of -G; None if unknown.

        None also if that section is larger than _LARGEST_INFO.
        """
        if not self._names or len(contents_of(self._elf, ".debug_info")) > _LARGEST_INFO:
            return None
        return self.programs(self._names[0]).declaration(name)

    def ptx_declaration(self, name: str) -> Frame | None:
        """Return the declaration of a variable in the PTX in the cubin; None if unknown."""
        if self._ptx_declarations is None:
            self._ptx_declarations = self._read_ptx_declarations()
        return self._ptx_declarations.get(os.fsencode(name))

    def _read_ptx_declarations(self) -> dict[bytes, Frame]:
        """Return, by word, the first declaration that contains it.

        Words of types are keys as well, which does no harm.
        """
        frames: dict[bytes, Frame] = {}
        for section in self._elf.iter_sections():
            if not section.name.startswith(PTX_TEXT):
                continue
            for number, line in enumerate(section.data().split(b"\0"), 1):
                declared = _PTX_VARIABLE.match(line)
                if declared is None:
                    continue
                frame = Frame(section.name, number, text=line.decode("utf-8", "replace"))
                for word in _WORD.findall(declared[0]):
                    frames.setdefault(word, frame)
        return frames


class LinePrograms:
    """The line number programs of one section."""

    def __init__(self, elf: ELFFile, name: str) -> None:
        self._elf = elf
        self._dwarf = read_debug_data(elf, name)
        self._data = contents_of(elf, name)
        self._units = dict(read_units(self._dwarf, self._data))  # by offset
        self._unit_starts = sorted(self._units)
        self._starts: list[int] = []  # offsets of sequences
        # By section of code, for each sequence: the offset of its code in that section, and the
        # offset of the sequence itself in the line section.
        self._by_section: dict[int, list[tuple[int, int]]] = {}
        for base, section, start in sorted(find_sequences(elf, name, self._data)):
            self._starts.append(start)
            self._by_section.setdefault(section, []).append((base, start))
        self._starts.sort()
        # By offset of the sequence: its rows, and the inlined call of each.
        self._rows: dict[int, tuple[list[LineState], list[Call | None]]] = {}
        self._directories: dict[int, str] | None = None  # DW_AT_comp_dir by offset of the unit
        # By name of a variable: unit, file number and line of its declaration.
        self._declarations: dict[bytes, tuple[LineProgram, int, int]] | None = None

    def frames(self, section: int, offset: int) -> list[Frame]:
        """Return the lines of an offset in a section (index), the innermost inlined one first."""
        line_row = self._row_of(section, offset)
        if line_row is None:
            return []
        start, row = line_row
        rows, calls = self._decode(start)
        unit = self._unit_of(start)
        frames = []
        while True:
            call = calls[row]
            name = None if call is None else self._string(call.name_offset)
            frames.append(self._make_frame(unit, rows[row], name))
            # The row of a call precedes the rows of its inlined code.
            if call is None or not 0 <= call.row < row:
                return frames
            row = call.row

    def line(self, section: int, offset: int) -> int | None:
        """Return the line number of an offset in a section; None if no row is for that offset.

        Unlike `frames`, this needs no file: a line table for PTX need not name one.
        """
        line_row = self._row_of(section, offset)
        if line_row is None:
            return None
        start, row = line_row
        rows, _ = self._decode(start)
        return rows[row].line

    def _row_of(self, section: int, offset: int) -> tuple[int, int] | None:
        """Return the sequence for an offset in a section of code, and the number of its row for it.

        A sequence is given by its own offset in the line section. None if no row is for the offset.
        """
        sequences = self._by_section.get(section, [])  # sorted by base
        after = bisect_right(sequences, offset, key=lambda sequence: sequence[0])
        if after == 0:
            return None
        base, start = sequences[after - 1]
        rows, _ = self._decode(start)
        origin = unpack_from("<Q", self._data, start + len(SET_ADDRESS))[0]
        row = bisect_right(rows, origin + offset - base, key=lambda state: state.address) - 1
        return None if row < 0 or rows[row].end_sequence else (start, row)

    def declaration(self, name: str) -> Frame | None:
        """Return the declaration of a variable, by `.debug_info`; None if unknown."""
        if self._declarations is None:
            self._declarations = self._read_declarations()
        declared = self._declarations.get(os.fsencode(name))
        if declared is None:
            return None
        program, file, line = declared
        path, _ = self._find_file(program, file)
        return Frame(path, line)

    def _read_declarations(self) -> dict[bytes, tuple[LineProgram, int, int]]:
        """Return, by name, the unit, file number and line of the first declaration.

        The name is the linkage name if there is one.
        """
        declarations: dict[bytes, tuple[LineProgram, int, int]] = {}
        for unit in self._dwarf.iter_CUs():
            program = self._dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            for entry in unit.get_top_DIE().iter_children():
                attributes = entry.attributes
                if not {"DW_AT_decl_file", "DW_AT_decl_line"} <= attributes.keys():
                    continue
                names = [attributes[key].value for key in _LINKAGE_NAMES if key in attributes]
                if not names and "DW_AT_name" in attributes:
                    names = [attributes["DW_AT_name"].value]
                place = attributes["DW_AT_decl_file"].value, attributes["DW_AT_decl_line"].value
                for name in names:
                    declarations.setdefault(name, (program, *place))
        return declarations

    def _unit_of(self, offset: int) -> LineProgram:
        """Return the unit that contains an offset."""
        return self._units[self._unit_starts[bisect_right(self._unit_starts, offset) - 1]]

    def _decode(self, start: int) -> tuple[list[LineState], list[Call | None]]:
        """Return the rows of the sequence at an offset, and the inlined call of each; cached."""
        if start not in self._rows:
            unit = self._unit_of(start)
            after = bisect_right(self._starts, start)
            end = self._starts[after] if after < len(self._starts) else unit.program_end_offset
            end = min(end, unit.program_end_offset)
            sequence = LineProgram(unit.header, unit.stream, unit.structs, start, end)
            rows = [entry.state for entry in sequence.get_entries() if entry.state is not None]
            lengths = unit["standard_opcode_lengths"]
            calls = calls_of_rows(self._data[start:end], unit["opcode_base"], lengths)
            self._rows[start] = rows, (calls + [None] * len(rows))[: len(rows)]
        return self._rows[start]

    def _make_frame(self, unit: LineProgram, row: LineState, function: str | None) -> Frame:
        """Return the frame of a row; `function` is the inlined function of its line, if any."""
        path, text = self._find_file(unit, row.file)
        line = None if text is None else _find_ptx_line(text, row.line)
        return Frame(path, row.line, row.column, function, line)

    def _find_file(self, unit: LineProgram, number: int) -> tuple[str, bytes | None]:
        """Return the path of a unit's file, and its text if it is PTX in the cubin, else None."""
        version = unit["version"]
        # From DWARF 5 on, files and directories count from 0, before that from 1.
        entry = unit["file_entry"][number if version >= 5 else number - 1]
        name = os.fsdecode(entry.name)
        if name.startswith(PTX_TEXT):
            return name, contents_of(self._elf, name)
        directories = unit["include_directory"]
        if version >= 5:
            parts = [directories[0], directories[entry.dir_index]]
        else:
            parts = [directories[entry.dir_index - 1]] if entry.dir_index else []
        directories_of_file = [os.fsdecode(part) for part in parts]
        return os.path.join(self._compile_directory(unit), *directories_of_file, name), None

    def _compile_directory(self, unit: LineProgram) -> str:
        """Return DW_AT_comp_dir of the unit, which only -G records; else an empty text."""
        if self._directories is None:
            self._directories = {}
            if self._dwarf.has_debug_info:
                for compiled in self._dwarf.iter_CUs():
                    attributes = compiled.get_top_DIE().attributes
                    if "DW_AT_comp_dir" in attributes and "DW_AT_stmt_list" in attributes:
                        path = os.fsdecode(attributes["DW_AT_comp_dir"].value)
                        self._directories[attributes["DW_AT_stmt_list"].value] = path
        unit_start = self._unit_starts[
            bisect_right(self._unit_starts, unit.program_start_offset) - 1
        ]
        return self._directories.get(unit_start, "")

    def _string(self, offset: int) -> str | None:
        """Return the string at an offset of `.debug_str`.

        None if it is empty or there is no section.
        """
        if self._dwarf.debug_str_sec is None:
            return None
        text = self._dwarf.get_string_from_table(offset)
        return os.fsdecode(text) if text else None


def _find_ptx_line(text: bytes, line: int) -> str:
    """Return a line of PTX in the cubin, by its number from 1.

    It is empty if missing, not None: the `text` None of a frame means that its file is not PTX in
    the cubin.
    """
    lines = text.split(b"\0")
    return lines[line - 1].decode("utf-8", "replace") if 0 < line <= len(lines) else ""
