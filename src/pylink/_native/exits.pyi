"""Rewriting the kernels of sm_100 and later as nvlink's finalizer leaves them."""

from pylink._native.tables import ObjectTables, Sections, Symbols

def rewrite_exits(
    objects: ObjectTables, steps: list[tuple[int, int]]
) -> tuple[bytes, Sections, Symbols, list[tuple[int, int, int, str]], list[tuple[int, int]]]:
    """The inputs with kernels as they are in nvlink's output: (arena, sections, symbols, faults,
    slowed).

    Each step is the number of a file and a mode of ``pylink.facts.kernelmodes``. For an executable
    it is ``MODE_NO_BARRIERS`` or, if some input has the attribute GEN_ERRBAR_AT_EXIT,
    ``MODE_BARRIERS``; ``MODE_LASTING_BARRIERS`` is for every link with ``-g``, also one with
    ``-r``, and for ``-r`` when some input has the attribute. Any other link with ``-r`` leaves its
    kernels alone. Files from before 13.0 have a step with ``MODE_EARLY_CODE`` or
    ``MODE_EARLY_CAPSULES``, whatever the link: all their functions change, and no exit does.
    ``MODE_GUARDED`` is for files whose FP64 and IMMA instructions run in a known time on their own
    chip and not on the target. It is the last step of a file, as others remove instructions. Sums
    of ``UPDATE_`` bits make all functions what another release has.

    The results are those of ``objects`` where nothing changed. Else changed contents lie after the
    end of the old arena, where the rows of their sections point; files and numbers stay. Each fault
    is a step that a file's format forbids: the file, the row of the section, the offset in it, and
    what is wrong; the other results are of no use then. Each pair of ``slowed`` is a file, and how
    many of its instructions wait because their schedule in nvlink's output is not known.
    ``ValueError`` for another mode,
    ``IndexError`` for another file.
    """
