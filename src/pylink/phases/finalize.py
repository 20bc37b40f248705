"""Phase finalize: writes headers, and the tables that relocate has not written."""

from __future__ import annotations

from pylink._native import image as native_image
from pylink.facts.objectformats import CURRENT, EARLY_FORMAT, OBJECT_FORMATS
from pylink.facts.releases import TRAIT_EARLY_FILES
from pylink.facts.target import FAMILY_C
from pylink.phases.notes import note_deficit, virtual_sm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.init import Job
    from pylink.phases.relocate import Image
    from pylink.phases.results import Objects


class Final:
    """The finished output: `image` has its bytes, none if the output was made in its file."""

    __slots__ = ("image", "job")

    def __init__(self, job: Job, image: bytes) -> None:
        self.job = job
        self.image = image


def finalize(sink: Sink, image: Image) -> Final:
    """Write ELF header and program headers, and the tables that phase relocate did not write."""
    placed, buffer = image.placed, image.buffer
    job, release = placed.merged.objects.job, placed.merged.objects.release
    try:
        if not image.has_tables:
            native_image.write_tables(buffer.canvas, placed, preserved=image.preserved)
        native_image.write_header(
            buffer.canvas,
            placed,
            _identity(placed.merged.objects),
            note_deficit(job.options, release),
            release.late_compat,
        )
    except OSError as error:
        buffer.report(error, sink)
    job.steps.end_step("write_tables")
    image_bytes = buffer.image
    return Final(job, image_bytes if isinstance(image_bytes, bytes) else b"")


def _identity(objects: Objects) -> tuple[bytes, int, int]:
    """Return three fields of the ELF header as the nvlink release to follow writes them.

    They are the OS ABI and its version (two bytes), e_version, and e_flags.
    """
    target, release = objects.job.target, objects.release
    if not release.traits & TRAIT_EARLY_FILES:
        return CURRENT.abi, 1, target.elf_flags
    if target.family == FAMILY_C:
        suffix = CURRENT.specific if target.specific else 0
        return CURRENT.abi, 1, target.elf_flags | suffix
    early = OBJECT_FORMATS[EARLY_FORMAT]
    flags = early.flags(target.sm, virtual_sm(objects), specific=target.specific)
    return early.abi, release.toolkit, flags
