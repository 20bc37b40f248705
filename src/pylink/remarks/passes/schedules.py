"""Pass finalize: files whose optimized code keeps the schedule of an older compiler.

There is at most one remark per file. docs/older-objects.md, "What is kept", lists the instructions
for which nvlink schedules a function again, and pylink does not. Other changes that nvlink makes to
older code are made by pylink, too.
"""

from __future__ import annotations

from pylink._native import elfread
from pylink.facts import sectionkinds
from pylink.facts.instructions import (
    NO_REGISTER,
    OP_DADD,
    OP_DFMA,
    OP_DMMA,
    OP_DMUL,
    OP_DSETP,
    OP_HMMA,
    OP_IADD3,
    OP_IMMA,
)
from pylink.facts.releases import (
    OLDEST_DEFAULT,
    TRAIT_FP64_SCOREBOARDS,
    TRAIT_FP64_UNPADDED,
    TRAIT_SHORT_ADDS,
    code_bounds,
    code_traits_of,
    toolkit_name,
)
from pylink.facts.target import FAMILY_C
from pylink.phases.kernels import SHORT_ADD_CHIPS
from pylink.remarks.passes.catalogue import SCHEDULE_KEPT
from pylink.remarks.passes.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged, Objects
    from pylink.remarks import Remarks

FP64 = frozenset((OP_DMUL, OP_DADD, OP_DSETP, OP_DFMA))
IMMA = frozenset((OP_IMMA,))
MATRIX = IMMA | {OP_HMMA, OP_DMMA}
ADDS = frozenset((OP_IADD3,))  # only IADD3 without a third operand, which is then NO_REGISTER
# Chips on which FP64 instructions have a fixed latency.
FAST_FP64_CHIPS = (100,)


def emit(merged: Merged, remarks: Remarks) -> None:
    """Emit a remark per file with code that only nvlink schedules again; none before sm_100."""
    objects = merged.objects
    if objects.job.target.family != FAMILY_C:
        return
    view = View(merged)
    for number in elfread.find_files_outside(objects.files, *code_bounds(objects.release)):
        file = objects.files[number]
        # TRAIT_ bits of the release that the link follows which the file's compiler lacked.
        missing = objects.traits & ~code_traits_of(file.toolkit, file.patch)
        # Numbers of the link's input sections, each with the code of one function.
        positions = _find_kept_schedules(
            objects, number, _rescheduled_operations(missing, objects.job.target.sm)
        )
        if positions:
            remarks.emit(
                SCHEDULE_KEPT(
                    view.section_name(positions[0]).removeprefix(".text."),
                    view.at_file(number),
                    sum(objects.sections[row].size for row in positions),
                    File=view.names[number],
                    Made=_toolkit_release(file.toolkit),
                    Functions=len(positions),
                    Release=objects.release.release,
                )
            )


def _toolkit_release(toolkit: int) -> str:
    """Return the release of a toolkit, such as "12.9" for 129.

    It is "12" for objects of CUDA 12 from sm_100 on, which do not record the release.
    """
    return toolkit_name(toolkit) if toolkit > OLDEST_DEFAULT.toolkit - 10 else "12"


def _rescheduled_operations(missing: int, sm: int) -> frozenset[int]:
    """Return the operations for which nvlink schedules the code of an older compiler again.

    `missing` has the TRAIT_ bits that the compiler lacked, `sm` is the target's number.
    """
    operations: frozenset[int] = frozenset()
    if missing & TRAIT_SHORT_ADDS:
        operations |= MATRIX | (ADDS if sm in SHORT_ADD_CHIPS else frozenset())
    if missing & TRAIT_FP64_SCOREBOARDS and sm in FAST_FP64_CHIPS:
        operations |= FP64 | IMMA
    if missing & TRAIT_FP64_UNPADDED and sm not in FAST_FP64_CHIPS:
        operations |= FP64
    return operations


def _find_kept_schedules(objects: Objects, number: int, operations: frozenset[int]) -> list[int]:
    """Return the sections of file `number` whose optimized code has one of the operations.

    They are numbers of rows in `objects.sections`.
    """
    file = objects.files[number]
    rows = []
    for row in range(file.first_section, file.first_section + file.section_count):
        section = objects.sections[row]
        if section.kind != sectionkinds.TEXT:
            continue
        code = objects.arena[section.offset : section.offset + section.size]
        # An instruction has 16 bytes: the operation in bits 0 to 8, the third operand's register
        # in byte 8, the cycles to wait in bits 1 to 4 of byte 13. Code that was not optimized
        # waits for 0 or 15 cycles.
        stalls = {control >> 1 & 15 for control in code[13::16]}
        used_operations = {
            low | (high & 1) << 8
            for low, high, third in zip(code[::16], code[1::16], code[8::16], strict=True)
            if low != OP_IADD3 or third == NO_REGISTER
        }
        if stalls - {0, 15} and used_operations & operations:
            rows.append(row)
    return rows
