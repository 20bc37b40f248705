"""Phase relocate: writes section contents, with every resolved relocation applied."""

from __future__ import annotations

from pylink._native import image as native_image
from pylink._native import relocs
from pylink.phases.load import refuse_change
from pylink.tables import string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink._native.tables import Patches
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.files.buffer import OutputBuffer
    from pylink.phases.results import Placed


class Image:
    """The output file; finalize continues with the same `buffer`.

    `has_tables` says that symbol tables and string tables are written, too, not only contents. With
    `preserved` shared variables have internal visibility, as --preserve-relocs asks.
    """

    __slots__ = ("buffer", "has_tables", "placed", "preserved")

    def __init__(
        self, placed: Placed, buffer: OutputBuffer, *, has_tables: bool, preserved: bool
    ) -> None:
        self.placed = placed
        self.buffer = buffer
        self.has_tables = has_tables
        self.preserved = preserved


def relocate(sink: Sink, placed: Placed, buffer: OutputBuffer) -> Image | None:
    """Write contents, relocated fields and emitted relocations; None after errors.

    Observers measure contents and tables apart. Without observers the tables are written as well,
    so that the whole output is written in order.
    """
    job = placed.merged.objects.job
    steps = job.steps
    preserved = job.options.preserve_relocs and not job.debug
    has_tables = not steps.observers
    patches = relocs.resolve_values(placed)
    row = relocs.find_unfit(patches, placed.size)
    if row >= 0:
        _report_deleted(placed, patches, row, sink)
    steps.end_step("resolve_values")
    try:
        if has_tables:
            row = native_image.write_output(buffer.canvas, placed, patches, preserved=preserved)
        else:
            row = native_image.write_contents(buffer.canvas, placed, patches)
    except OSError as error:
        buffer.report(error, sink)
    if row >= 0:
        _report_capsule(placed, row, sink)
        return None
    # Later reports need only the tables. Diagnostics may still read the inputs, so the inputs are
    # copied if there are diagnostics.
    _unmap_inputs(placed, sink)
    steps.end_step("write_contents")
    return Image(placed, buffer, has_tables=has_tables, preserved=preserved)


def _unmap_inputs(placed: Placed, sink: Sink) -> None:
    """Unmap the inputs, which are no longer needed; LinkError if one changed while mapped."""
    objects = placed.merged.objects
    changed = objects.job.mapped.end(keeps=bool(sink.diagnostics))
    if changed >= 0:
        refuse_change(objects.names[changed], sink)


def _report_deleted(placed: Placed, patches: Patches, row: int, sink: Sink) -> NoReturn:
    """Refuse row `row` of `patches`, a field that cannot be written, as one of a deleted symbol."""
    from pylink.phases.report_symbols import report_deleted

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.fields import explain_patch

        explain_patch(diagnostic, placed, patches, row)

    report_deleted(explain, sink)


def _report_capsule(placed: Placed, row: int, sink: Sink) -> None:
    """Report that capsule `row`, a row of `placed.outs`, does not describe its function's code."""
    objects = placed.merged.objects
    sink.report(
        "capsule-format",
        file=objects.names[objects.sections[placed.outs[row].source].file],
        section=string(placed.shstrtab, placed.places[row].name),
        reason="its records do not cover the code of the function",
    )
