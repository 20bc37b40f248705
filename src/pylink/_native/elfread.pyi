"""Reads relocatable cubins into checked tables, and finds files by what the tables say.

After `parse` every offset, count, name and index in its tables is inside its file, so that later
kernels need not check them. Sources: System V gABI, chapter 4, and docs/format-notes.md.
"""

from pylink._native.results import ObjectTables
from pylink._native.tables import Faults, Files, Sections, Symbols

def parse(
    arena: bytes, extents: bytes, times: bytearray | None = None
) -> tuple[Files, Sections, Symbols, Faults]:
    """Return checked tables of all files in buffer `arena`: (files, sections, symbols, faults).

    `arena` and `extents` come from `inputfiles`. Sections get the kinds of
    `pylink.facts.sectionkinds`. Rows are in input order. Reading stops at the first fault, with
    incomplete tables; reasons are those of `pylink.phases.faults`. `times` gets rows like those of
    `inputfiles.read_files`. `IndexError` for an extent outside the arena.
    """

def check_again(objects: ObjectTables, numbers: list[int]) -> Faults:
    """Check files whose contents were changed since `parse`, and return the first fault, if any.

    `numbers` are those of the files. Only symbols and references between sections and symbols are
    checked, with the reasons of `parse`.
    """

def find_changes(files: Files) -> list[int]:
    """Return the numbers of files of another toolkit, target or flags than the previous file's.

    These are the columns from `toolkit` to `flags`. Files about which a link warns (32-bit
    addresses, no ISA_CLASS) and the first file are always included. In ascending order.
    """

def find_flagged(files: Files, bit: int) -> list[int]:
    """Return the numbers of the files with this bit in the column `flags`, ascending."""

def find_files_outside(files: Files, low: int, high: int) -> list[int]:
    """Return the numbers of the files compiled by a tool below `low`, or by one from `high` on.

    Tools are numbers of `pylink.facts.releases.tool_number`. In ascending order.
    """

def find_kernels(objects: ObjectTables, *, every: bool) -> list[int]:
    """Return the numbers of the files whose code is rewritten where it exits, ascending.

    These are files with a kernel that has a fence, or that only traps; with `every` also those with
    any other kernel, or with a function that exits. A fence is an instruction with the low 12 bits
    0x992 (MEMBAR), an exit one with 0x94d (EXIT).
    """

def find_ties(objects: ObjectTables) -> list[int]:
    """Return the files whose Mercury sections agree with another file's: kinds, sizes, names.

    Files without Mercury debug sections agree with none. The numbers are in ascending order.
    """
