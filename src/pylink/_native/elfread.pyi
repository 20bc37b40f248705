"""Reads relocatable cubins into checked tables.

Tables are `bytes` of the packed rows of `rows.pxd`, little endian; `pylink.tables` has numbers
that Python reads. Row numbers are the only references, -1 for no row.

After `parse` every offset, count, name and index in its tables is inside its file, so that later
kernels need not check them. Sources: System V gABI, chapter 4, and docs/format-notes.md.
"""

from pylink._native.tables import Faults, Files, ObjectTables, Sections, Symbols

def parse(
    arena: bytes, extents: bytes, times: bytearray | None = None
) -> tuple[Files, Sections, Symbols, Faults]:
    """Check and tabulate every file of the arena: (files, sections, symbols, faults).

    `arena` and `extents` come from `inputfiles`. Sections get the kinds of
    `pylink.facts.sectionkinds`. Rows are in input order. Parsing stops at the first fault, with
    incomplete tables. Reasons are those of `pylink.phases.faults`. `times` gets rows like those of
    `inputfiles.read_files`, except for the last two columns.
    `IndexError` for an extent outside the arena.
    """

def check_again(objects: ObjectTables, numbers: list[int]) -> Faults:
    """The first fault of files whose contents were changed since `parse`.

    Checks the references between sections and symbols again, with the reasons of `parse`.
    """

def find_changes(files: Files) -> list[int]:
    """Numbers of the files whose properties differ from the previous file's, ascending.

    Properties are the columns from `toolkit` to `flags`. Files that a link warns of (32-bit
    addresses, no ISA_CLASS) are always included.
    """

def find_flagged(files: Files, bit: int) -> list[int]:
    """Numbers of the files with this bit in the column `flags`, ascending."""

def find_files_outside(files: Files, low: int, high: int) -> list[int]:
    """Numbers of the files compiled by a tool below `low`, or by one from `high` on, ascending.

    Tools are numbers of `pylink.facts.releases.tool_number`.
    """

def find_kernels(objects: ObjectTables, *, every: bool) -> list[int]:
    """Numbers of the files with a kernel that has a fence or, with `every`, with code that exits.

    Kernels that only trap count, too. A fence is an instruction with the low 12 bits 0x992
    (MEMBAR). Code that exits is a kernel, or a function with an EXIT (0x94d).
    """

def find_ties(objects: ObjectTables) -> list[int]:
    """Numbers of the files whose Mercury sections agree in kinds, sizes and names with another's.

    Files without Mercury debug sections never agree. In ascending order.
    """
