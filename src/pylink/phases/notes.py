"""The notes that identify tool and target, and two sections of fixed content."""

from __future__ import annotations

from pylink import __version__
from pylink._native import notes
from pylink.diagnostics.stream import to_bytes
from pylink.facts import compat
from pylink.facts.target import FAMILY_A, FAMILY_C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.facts.releases import Release
    from pylink.options import Options
    from pylink.phases.results import Merged, Objects

NT_TKINFO = 2000
NT_CUINFO = 1000

# What nvlink writes from sm_75 to sm_90; its meaning is not documented.
REL_ACTION = bytes.fromhex("73000000000000000000001125000536")

FASTPATH_CODE = 0x08  # bit of attribute 0x0b of .nv.compat that depends on the instructions


def note(kind: int, contents: bytes) -> bytes:
    """An ELF note of NVIDIA: sizes, type, name, contents."""
    return words(12, len(contents), kind) + b"NVIDIA Corp\0" + contents


def words(*values: int, size: int = 4) -> bytes:
    """Unsigned integers of `size` bytes."""
    return b"".join(value.to_bytes(size, "little") for value in values)


def tkinfo_note(options: Options, release: Release) -> bytes:
    """Which tool linked, and how: version 2, five string offsets, strings padded to 4 bytes.

    Where nvlink has the number of its build stands the linker that was followed.
    """
    strings = b""
    offsets = []
    names = object_name(options), "pylink", f"pylink {__version__}", release.linker
    for text in (*names, options.recorded):
        offsets.append(len(strings))
        strings += to_bytes(text) + b"\0"
    strings += b"\0" * (-len(strings) % 4)
    return note(NT_TKINFO, words(2, *offsets) + strings)


def object_name(options: Options) -> str:
    """What the tool note calls the output: nothing, with -g its file."""
    return (options.output_file or "") if options.debug else ""


def note_deficit(options: Options, release: Release) -> int:
    """By how many bytes our note is shorter than nvlink's, whose own strings are longer."""
    theirs = release.tool_strings + len(to_bytes(options.recorded)) + 1
    theirs += len(to_bytes(object_name(options)))
    return 48 + (theirs + 3) // 4 * 4 - len(tkinfo_note(options, release))


def cuinfo_note(objects: Objects, sink: Sink) -> bytes:
    """Which target: version 2, SM number, toolkit, 0.

    The SM number is the lowest of the PTX that inputs were made from. The driver gives it to all
    kernels, so inputs that do not agree are worth a word.
    """
    lowest, low, low_files, highest, high = notes.virtual_archs(objects)
    if lowest < highest:
        sink.report(
            "virtual-arch-lowered",
            file=objects.names[low],
            more=f" and {low_files - 1} more" if low_files > 1 else "",
            lowest=lowest,
            other=objects.names[high],
            highest=highest,
        )
    virtual = min(lowest, objects.job.target.sm) if low >= 0 else objects.job.target.sm
    return note(NT_CUINFO, words(2, virtual, objects.release.toolkit, 0, size=2))


def compat_note(merged: Merged, *, has_code: bool) -> bytes:
    """.nv.compat of the output."""
    objects = merged.objects
    target = objects.job.target
    if not objects.names and target.family != FAMILY_A:
        # Of a link without any cubin: the target's suffix, and no features.
        specific = bytes((2, 9, target.specific, 0))
        return specific + (bytes((4, 0x0B, 8, *[0] * 9)) if target.family == FAMILY_C else b"")
    features = target.features if has_code else 0
    fastpath = 0
    if features & FASTPATH_CODE:
        fastpath = notes.fastpath_bits(merged)
    rows = compat.compiled(objects.release.toolkit, target.family)
    return notes.merge_compat(objects, rows, target.specific, features, fastpath)
