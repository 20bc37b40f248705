"""Rewrites the kernels of sm_100 and later as nvlink's finalizer does."""

from typing import TypeAlias

from pylink._native.results import ObjectTables
from pylink._native.tables import Sections, Symbols

# A step (one change of one file) that is impossible: the number of the file, the SectionRow, the
# offset in it in bytes, and what is damaged there; empty if the file is valid.
StepFault: TypeAlias = tuple[int, int, int, str]
# The number of a file, and how many of its instructions were changed otherwise than by nvlink: the
# instruction after each waits longer, since only a compiler can compute nvlink's schedule.
SlowedFile: TypeAlias = tuple[int, int]

def rewrite_exits(
    objects: ObjectTables, steps: list[tuple[int, int]]
) -> tuple[bytes, Sections, Symbols, list[StepFault], list[SlowedFile]]:
    """Rewrite kernels as in nvlink's output: (arena, sections, symbols, faults, slowed).

    Each step is the number of a file and a mode of `pylink.facts.kernelmodes`. For an executable
    the mode is `MODE_NO_BARRIERS` or, if some input has the attribute GEN_ERRBAR_AT_EXIT,
    `MODE_BARRIERS`. `MODE_LASTING_BARRIERS` is for every link with `-g`, even with `-r`, and for
    `-r` if some input has the attribute. Other links with `-r` do not change kernels. Files from
    before 13.0 have a step with `MODE_EARLY_CODE` or `MODE_EARLY_CAPSULES` in every link: all their
    functions change, but no exits. `MODE_GUARDED` is for files whose FP64 and IMMA instructions
    take a known time on their own chip but not on the target. It is the last step of a file, since
    other steps remove instructions. A mode that is a sum of `UPDATE_` bits converts all
    functions to another release.

    Without changes arena, sections and symbols are those of `objects`. Changed contents are
    appended to the arena, and their sections' rows refer to them; files and row numbers stay. With
    faults the other results are unusable. `ValueError` for another mode, `IndexError` for another
    file.
    """
