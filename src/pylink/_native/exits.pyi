"""Rewriting the kernels of sm_100 and later as nvlink's finalizer leaves them."""

from pylink._native.tables import ObjectTables, Sections, Symbols

def rewrite_exits(
    objects: ObjectTables, steps: list[tuple[int, int]]
) -> tuple[bytes, Sections, Symbols, list[tuple[int, int, int, str]]]:
    """The inputs with kernels as they are in nvlink's output: (arena, sections, symbols, faults).

    Each step is the number of a file and a mode: 0 for an executable without error barriers, 1 for
    one with error barriers (some input has the attribute GEN_ERRBAR_AT_EXIT), 2 for error barriers
    that stay valid whatever is linked in later: every link with ``-g``, also one with ``-r``, and
    ``-r`` when some input has the attribute. Any other link with ``-r`` leaves its kernels alone. 3
    is for files from before 13.0, whatever the link: all their functions become what 13.0 has, and
    no exit changes. 4 is for the same files: their capsules become what 12.9 has.

    The results are those of ``objects`` where nothing changed. Else changed contents lie behind the
    end of the old arena, where the rows of their sections point; files and numbers stay. Each fault
    is a step that a file's format forbids: the file, the row of the section, the offset in it, and
    what is wrong; the other results are of no use then. ``ValueError`` for another mode,
    ``IndexError`` for another file.
    """
