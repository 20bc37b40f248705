"""Reading relocatable cubins: headers into checked tables.

Tables are ``bytes`` of the packed rows of ``rows.pxd``, little endian; ``pylink.tables`` has those
that Python looks into. Row numbers are the only references, -1 is none.

After ``parse`` every offset, count, name and index in its tables lies inside the file that it came
from, so that later kernels follow them without looking back. Sources: System V gABI, chapter 4,
and docs/format-notes.md.
"""

from pylink._native.tables import Faults, Files, ObjectTables, Sections, Symbols

def parse(
    arena: bytes, extents: bytes, times: bytearray | None = None
) -> tuple[Files, Sections, Symbols, Faults]:
    """Check and tabulate every file of the arena: (files, sections, symbols, faults).

    ``arena`` and ``extents`` come from ``inputfiles``. Sections get the kinds of
    ``pylink.facts.sectionkinds``. Rows are in input order; the only fault is the first thing that
    is wrong, and then the tables end in the middle. Reasons are those of ``pylink.phases.faults``.
    ``times`` takes rows as that of ``inputfiles.read_files`` does, except for the last two columns.
    ``IndexError`` for an extent outside the arena.
    """

def check_again(objects: ObjectTables, numbers: list[int]) -> Faults:
    """The first thing that is wrong with files whose contents were changed since ``parse``.

    Checks again what sections and symbols say of each other, with the reasons of ``parse``.
    """

def find_changes(files: Files) -> list[int]:
    """Numbers of the files that say other things of themselves than the file before.

    Those are the columns from toolkit to what it says. With them all files that a link warns of:
    of 32-bit addresses, and without ISA_CLASS. In ascending order.
    """

def find_flagged(files: Files, bit: int) -> list[int]:
    """Numbers of the files with a bit in the column of what they say. In ascending order."""

def find_apart(files: Files, low: int, high: int) -> list[int]:
    """Numbers of the files that were made by a tool below ``low``, or by one from ``high`` on.

    Tools are numbers as of ``pylink.facts.releases.tool_number``. In ascending order.
    """

def find_kernels(objects: ObjectTables, every: bool) -> list[int]:
    """Numbers of the files with a kernel that has a fence or, with ``every``, with code that exits.

    Kernels that only trap count as well. A fence is an instruction with the low 12 bits 0x992
    (MEMBAR). Kernels exit, and functions with an EXIT (0x94d).
    """

def find_ties(objects: ObjectTables) -> list[int]:
    """Numbers of the files whose Mercury sections agree in kinds, sizes and names with another's.

    Files without Mercury debug sections never agree. In ascending order.
    """
