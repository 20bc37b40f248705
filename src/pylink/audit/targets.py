"""The GPUs that the images of a file have code for."""

from __future__ import annotations

from pylink.facts.fatbinentries import FLAG_CHIP, FLAG_FAMILY, FLAGS_OF_SUFFIXES, suffix_of
from pylink.facts.picknumbers import EntryKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.audit.model import Entry, LinkedFile


def sm_number(text: str) -> int:
    """Return the SM number that `text` has in a form such as `90`, `sm_90` or `9.0`.

    ValueError for another form.
    """
    digits = text.removeprefix("sm_")
    major, point, minor = digits.partition(".")
    if point and len(minor) == 1 and major.isdecimal() and minor.isdecimal():
        digits = major + minor
    if not digits.isdecimal() or not 10 <= int(digits) < 10000:
        raise ValueError(f"'{text}': expected a number such as 90, sm_90 or 9.0")
    return int(digits)


def _runs_on(entry: Entry, gpu: int) -> bool:
    """Return whether the GPU with SM number `gpu` can run the code, or its driver compile it."""
    is_one_chip = entry.flags & FLAG_CHIP != 0
    is_family = entry.flags & FLAG_FAMILY != 0
    is_same_major = entry.sm // 10 == gpu // 10
    if is_one_chip:
        return entry.sm == gpu and entry.kind in (EntryKind.ELF, EntryKind.PTX)
    if entry.kind == EntryKind.ELF or (entry.kind == EntryKind.PTX and is_family):
        return is_same_major and entry.sm <= gpu
    return entry.kind == EntryKind.PTX and entry.sm <= gpu


def has_code_for(file: LinkedFile, gpu: int) -> bool:
    """Return whether an image of a file has code for the GPU with SM number `gpu`."""
    return any(_runs_on(entry, gpu) for image in file.images for entry in image.entries)


def architectures(entries: Iterable[Entry]) -> list[str]:
    """Return the architectures of the code, such as sm_90a and compute_90: sm_ first, ascending."""
    prefixes = {EntryKind.ELF: "sm", EntryKind.PTX: "compute"}
    targets = {
        (entry.sm, entry.kind, suffix_of(entry.flags))
        for entry in entries
        if entry.kind in prefixes
    }
    return [
        f"{prefixes[kind]}_{sm}{suffix}"
        for kind in prefixes
        for sm, entry_kind, suffix in sorted(targets)
        if entry_kind == kind
    ]


def unused_relocatable(file: LinkedFile) -> int:
    """Return the total bytes of relocatable cubins whose target also has a linked cubin."""
    linked = {
        (entry.sm, entry.flags & FLAGS_OF_SUFFIXES)
        for image in file.images
        for entry in image.entries
        if entry.kind == EntryKind.ELF
    }
    return sum(
        entry.size
        for module in file.modules
        for entry in module.entries
        if entry.kind == EntryKind.ELF and (entry.sm, entry.flags & FLAGS_OF_SUFFIXES) in linked
    )
