"""Phase finalize: symbol tables, string tables and headers complete the file."""

from __future__ import annotations

from pylink._native import image as native_image
from pylink.phases.notes import note_deficit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.init import Job
    from pylink.phases.relocate import Image


class Final:
    """The finished file; `image` is empty where it is in the draft's file, which is to be it."""

    __slots__ = ("image", "job")

    def __init__(self, job: Job, image: bytes) -> None:
        self.job = job
        self.image = image


def finalize(image: Image, sink: Sink) -> Final:
    """Write what describes the contents."""
    placed = image.placed
    job = placed.merged.objects.job
    canvas = image.draft.canvas
    preserved = job.options.preserve_relocs and not job.debug
    symtab_info, mercury_info = native_image.write_symbols(canvas, placed, preserved)
    job.steps.done("write_symbols")
    native_image.write_headers(
        canvas,
        placed,
        symtab_info,
        mercury_info,
        job.target.elf_flags,
        note_deficit(job.options, placed.merged.objects.release),
    )
    job.steps.done("write_headers")
    made = image.draft.image
    return Final(job, made if isinstance(made, bytes) else b"")
