"""Pass debug: the bytes of debug data by section and by the input they come from."""

from __future__ import annotations

from pylink.facts import sectionkinds
from pylink.remarks.passes.catalogue import DEBUG_LEFT_OUT, DEBUG_PIECE, DEBUG_SECTION
from pylink.remarks.passes.outputs import Outputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Placed
    from pylink.remarks import Remarks

KINDS = (sectionkinds.DEBUG, sectionkinds.MERC_DEBUG)


def emit(placed: Placed, remarks: Remarks) -> None:
    """Emit a remark for each debug section of the inputs, then for each output section with these.

    Input sections come in the order of the files, output sections in that of the output file.
    """
    outputs = Outputs(placed)
    view = outputs.view
    # By input section: the section of another file that replaces it, or -1; empty if none does.
    stand_ins = placed.merged.stand_ins
    totals: dict[int, tuple[int, int]] = {}  # by output section: number of pieces, their bytes
    table = zip(view.sections, placed.merged.out_of, strict=True)
    for number, (section, output_section) in enumerate(table):
        if section.kind not in KINDS:
            continue
        size, origin = section.size, view.at_section(number)
        folded = stand_ins and stand_ins[number] >= 0
        if folded or output_section < 0 or not outputs.index[output_section]:
            reason = "replaced by the copy of another file" if folded else "not in the output"
            name = view.section_name(number)
            remarks.emit(DEBUG_LEFT_OUT(name, origin, size, Bytes=size, Reason=reason))
            continue
        pieces, total = totals.get(output_section, (0, 0))
        totals[output_section] = (pieces + 1, total + size)
        file = view.file_of_section(number)
        remarks.emit(
            DEBUG_PIECE(outputs.name(output_section), origin, size, Bytes=size, Origin=file)
        )
    for output_section, (pieces, total) in sorted(
        totals.items(), key=lambda item: outputs.index[item[0]]
    ):
        size = outputs.size(output_section)
        remarks.emit(
            DEBUG_SECTION(
                outputs.name(output_section),
                view.output,
                size,
                OutputBytes=size,
                InputBytes=total,
                Pieces=pieces,
            )
        )
