"""Phase relocate: section contents in their places, with every resolved relocation applied."""

from __future__ import annotations

from pylink._native import image as native_image
from pylink._native import relocs
from pylink.tables import OUT, OUT_SOURCE, section_file, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.layout import Placed


class Image:
    """The output file without its tables; `data` is handed on, not copied, to finalize."""

    __slots__ = ("data", "placed")

    def __init__(self, placed: Placed, data: bytes) -> None:
        self.placed = placed
        self.data = data


def relocate(placed: Placed, sink: Sink) -> Image | None:
    """Copy contents and write relocated fields and the relocations that stay; None after errors."""
    merged = placed.merged
    objects = merged.objects
    job = objects.job
    data = native_image.copy_contents(
        objects.arena,
        objects.sections,
        placed.outs,
        placed.section_order,
        placed.places,
        merged.out_of,
        merged.base,
        merged.stand_ins,
        placed.blobs,
        placed.spans,
        placed.size,
    )
    steps = job.steps
    steps.done("copy_contents")
    patches = relocs.resolve_values(
        merged.fixes,
        placed.outs,
        placed.places,
        merged.entities,
        placed.values,
        placed.homes,
        merged.base,
        placed.dynamic,
        placed.lost,
        job.debug,
    )
    steps.done("resolve_values")
    bad = relocs.patch(data, patches)
    if bad >= 0:
        _report_deleted(placed, patches, bad, sink)
    steps.done("patch")
    bad = relocs.patch_capsules(
        data,
        merged.fixes,
        placed.outs,
        placed.places,
        merged.entities,
        placed.values,
        placed.homes,
    )
    if bad >= 0:
        _report_capsule(placed, bad, sink)
        return None
    steps.done("patch_capsules")
    native_image.write_relocations(
        data,
        placed.outs,
        placed.section_index,
        placed.places,
        merged.keeps,
        placed.symbol_index,
        placed.section_symbol_index,
        placed.instance_index,
    )
    steps.done("write_relocations")
    return Image(placed, data)


def _report_deleted(placed: Placed, patches: bytes, bad: int, sink: Sink) -> NoReturn:
    """Refuse what nvlink refuses, in its words: a field that nothing can be written to."""

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.fields import explain_patch  # noqa: PLC0415 -- when it is looked at

        explain_patch(diagnostic, placed, patches, bad)

    reason = "Internal error: reference to deleted symbol"
    sink.fatal("internal-error", explain=explain, reason=reason)


def _report_capsule(placed: Placed, row: int, sink: Sink) -> None:
    objects = placed.merged.objects
    source = OUT.unpack_from(placed.outs, row * OUT.size)[OUT_SOURCE]
    sink.report(
        "capsule-format",
        file=objects.names[section_file(objects.sections, source)],
        section=section_name(objects.arena, objects.sections, source),
        reason="its records do not cover the code of the function",
    )
