"""Rewriting the kernels of sm_100 and later as nvlink's finalizer leaves them."""

from pylink._native.tables import ObjectTables, Sections, Symbols

def rewrite_exits(
    objects: ObjectTables, steps: list[tuple[int, int]]
) -> tuple[bytes, Sections, Symbols, list[tuple[int, int, int, str]], list[tuple[int, int]]]:
    """The inputs with kernels as they are in nvlink's output: (arena, sections, symbols, faults,
    slowed).

    Each step is the number of a file and a mode: 0 for an executable without error barriers, 1 for
    one with error barriers (some input has the attribute GEN_ERRBAR_AT_EXIT), 2 for error barriers
    that stay valid whatever is linked in later: every link with ``-g``, also one with ``-r``, and
    ``-r`` when some input has the attribute. Any other link with ``-r`` leaves its kernels alone. 3
    is for files from before 13.0, whatever the link: all their functions become what 13.0 has, and
    no exit changes. 4 is for the same files: their capsules become what 12.9 has. 5 is for files
    whose FP64 and IMMA instructions run in a known time on their own chip and not on the target:
    each waits for its result. It is the last step of a file, as others remove instructions. Sums of
    0x100 (a NOP in front of BSYNC), 0x200 (none) and 0x800 (fences wait for their guards) make all
    functions what another release has. So do, for functions that were not scheduled, 0x400 (IADD
    for IADD3) and 0x1000 (neither stalls nor scoreboards).

    The results are those of ``objects`` where nothing changed. Else changed contents lie after the
    end of the old arena, where the rows of their sections point; files and numbers stay. Each fault
    is a step that a file's format forbids: the file, the row of the section, the offset in it, and
    what is wrong; the other results are of no use then. Each pair of ``slowed`` is a file, and how
    many of its instructions wait because their schedule in nvlink's output is not known.
    ``ValueError`` for another mode,
    ``IndexError`` for another file.
    """
