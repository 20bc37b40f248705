"""Makes the notes that identify tool and target, and contents of .nv.compat and .nv.rel.action."""

from __future__ import annotations

from pylink import __version__
from pylink._native import notes
from pylink.diagnostics.stream import to_bytes
from pylink.facts import compat
from pylink.facts.attributes import BVAL, EICOMPAT_NUMBER, SVAL
from pylink.facts.elf import NT_CUINFO, NT_TKINFO
from pylink.facts.releases import TRAIT_EARLY_FILES, TRAIT_PARTS_ACCELERATED, TRAIT_SURE_FEATURES
from pylink.facts.rownumbers import FileFlag
from pylink.facts.target import FAMILY_A, FAMILY_C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.facts.releases import Release
    from pylink.options.model import Options
    from pylink.phases.results import Merged, Objects


# Contents of .nv.rel.action for sm_75 to sm_90; its meaning is not documented.
REL_ACTION = bytes.fromhex("73000000000000000000001125000536")

# Attributes of .nv.compat: the suffix of the target, and bits for features of the code, which say
# whether its finalization can take a fast path.
ACCELERATOR_TARGET = EICOMPAT_NUMBER["CUDA_ACCELERATOR_TARGET"]
FASTPATH_FEATURES = EICOMPAT_NUMBER["CAN_FASTPATH_FINALIZE"]
# Bits of FASTPATH_FEATURES that only code for a target with the suffix `a` has: bit 3 for sm_100a,
# bit 6 for sm_120a.
CHIP_FEATURES = 0x48
NOTE_VENDOR = b"NVIDIA Corp\0"
# Bytes of the note on the tool in front of its strings: note header, name, version, five offsets.
TKINFO_HEAD_SIZE = 12 + len(NOTE_VENDOR) + 4 + 5 * 4


def _make_note(kind: int, contents: bytes) -> bytes:
    """Pack an ELF note of NVIDIA: sizes, type, name, contents."""
    return _pack_words(len(NOTE_VENDOR), len(contents), kind) + NOTE_VENDOR + contents


def _pack_words(*values: int, size: int = 4) -> bytes:
    """Pack unsigned integers of `size` bytes."""
    return b"".join(value.to_bytes(size, "little") for value in values)


def tkinfo_note(options: Options, release: Release) -> bytes:
    """Return the note on tool and options: version, five string offsets, strings padded to 4 bytes.

    The name of the linker that pylink follows replaces nvlink's build number.
    """
    strings = b""
    offsets = []
    names = options.recorded_output, "pylink", f"pylink {__version__}", release.linker
    for text in (*names, options.recorded):
        offsets.append(len(strings))
        strings += to_bytes(text) + b"\0"
    strings += b"\0" * (-len(strings) % 4)
    version = release.toolkit if release.traits & TRAIT_EARLY_FILES else 2
    return _make_note(NT_TKINFO, _pack_words(version, *offsets) + strings)


def note_deficit(options: Options, release: Release) -> int:
    """Return the number of bytes by which pylink's note on the tool is shorter than nvlink's."""
    string_size = release.tool_strings + len(to_bytes(options.recorded)) + 1
    string_size += len(to_bytes(options.recorded_output))
    return TKINFO_HEAD_SIZE + (string_size + 3) // 4 * 4 - len(tkinfo_note(options, release))


def virtual_sm(objects: Objects) -> int:
    """Return the lowest SM number of the PTX that inputs were compiled from, at most the target's.

    A release before 13.0 counts only the last input if the target is sm_100 or later. The target's
    number if no input counts.
    """
    target = objects.job.target
    if objects.traits & TRAIT_EARLY_FILES and target.family == FAMILY_C and objects.names:
        return min(objects.files[len(objects.names) - 1].ptx_sm, target.sm)
    archs = notes.find_virtual_archs(objects)
    return min(archs.lowest, target.sm) if archs.lowest_file >= 0 else target.sm


def cuinfo_note(objects: Objects) -> bytes:
    """Return the note on the target: words of 16 bits, the second of which is `virtual_sm`."""
    if objects.traits & TRAIT_EARLY_FILES:
        return _make_note(NT_CUINFO, _pack_words(1, virtual_sm(objects), 1, 0, 1, 0, size=2))
    return _make_note(
        NT_CUINFO, _pack_words(2, virtual_sm(objects), objects.release.toolkit, 0, size=2)
    )


def warn_lowered(objects: Objects, sink: Sink) -> None:
    """Warn of different virtual architectures: the driver uses the lowest for all kernels."""
    archs = notes.find_virtual_archs(objects)
    if archs.lowest < archs.highest:
        others = archs.lowest_count - 1
        sink.report(
            "virtual-arch-lowered",
            file=objects.names[archs.lowest_file],
            more=f" and {others} more" if others else "",
            lowest=archs.lowest,
            other=objects.names[archs.highest_file],
            highest=archs.highest,
        )


def compat_note(merged: Merged, *, has_code: bool) -> bytes:
    """Return the contents of .nv.compat of the output; `has_code`: it has a section of code."""
    objects = merged.objects
    target = objects.job.target
    if not objects.names and target.family != FAMILY_A:
        # A link without cubins states the target's suffix, and from sm_100 on that the code has no
        # features (a word of 8 bytes).
        suffix_record = bytes((BVAL, ACCELERATOR_TARGET, target.specific, 0))
        no_features = bytes((SVAL, FASTPATH_FEATURES, 8, 0, *[0] * 8))
        return suffix_record + (no_features if target.family == FAMILY_C else b"")
    has_features = has_code or objects.traits & TRAIT_SURE_FEATURES
    features = target.features if has_features else 0
    # From 13.1 on, the bits for one chip are cleared if the code of some file is for several.
    is_accelerated = has_code and target.specific and objects.traits & TRAIT_PARTS_ACCELERATED
    if is_accelerated and not all(
        flags & FileFlag.SPECIFIC for flags in objects.files.column("flags")
    ):
        features &= ~CHIP_FEATURES
    fastpath = 0
    if features & compat.FASTPATH_CODE:
        fastpath = notes.fastpath_bits(merged)
    rows = compat.pack_rows(objects.release.toolkit, target.family)
    return notes.merge_compat(
        objects, rows, arch_specific=target.specific, features=features, fastpath=fastpath
    )
