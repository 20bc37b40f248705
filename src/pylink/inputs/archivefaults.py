"""Texts that say how an archive is damaged."""

from __future__ import annotations

import os

from pylink.facts.archiveheaders import END_OFFSET, NAME_SIZE, SIZE_OFFSET
from pylink.facts.outcomes import ArchiveFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from pylink._native import archives

# Texts by the reason that `archives.list_members` gives: about the archive, and about a member.
ARCHIVE_FAULTS = {
    ArchiveFault.CUT: "the header at {header:#x} is cut short",
    ArchiveFault.END: "the header at {header:#x} does not end as a header does",
}
MEMBER_FAULTS = {
    ArchiveFault.SIZE: "its size {size} is not a decimal number",
    ArchiveFault.RANGE: "its header says {value} bytes, and {limit} are left",
    ArchiveFault.NAME_LENGTH: "its name has {length} bytes, of {limit} in all",
    ArchiveFault.NAME_OFFSET: "its name begins with a slash and is not an offset",
    ArchiveFault.PLACE: "its place {place} is not a decimal number",
    ArchiveFault.NO_NAMES: "it has a long name, and no member // comes before it",
    ArchiveFault.NAME_RANGE: "its name is at {value} of the long names, which have {limit} bytes",
    ArchiveFault.EMPTY_NAME: "its name at {value} of the long names is empty",
}


def describe_fault(data: bytes | mmap, start: int, fault: archives.MemberFault) -> tuple[str, str]:
    """Return the text for a fault of `archives.list_members`, and the member's name or "".

    `start` is the offset of the archive in `data`.
    """
    reason, header, value, limit = fault
    if reason in ARCHIVE_FAULTS:
        return ARCHIVE_FAULTS[reason].format(header=header), ""
    # The name is the first field of a header, the size the last one before the end mark.
    text = data[start + header : start + header + END_OFFSET]
    field = text[:NAME_SIZE].rstrip(b" ")
    sentence = MEMBER_FAULTS[reason].format(
        value=value,
        limit=limit,
        size=_quote_field(text[SIZE_OFFSET:].strip(b" ")),
        length=_quote_field(field[3:]),
        place=_quote_field(field.partition(b":")[2]),
    )
    member = field if field[:1] == b"/" else field.removesuffix(b"/")
    return f"{sentence} (header at {header:#x})", os.fsdecode(member)


def _quote_field(field: bytes) -> str:
    """Quote bytes of a header for a diagnostic."""
    return "'" + field.decode("utf-8", "backslashreplace") + "'"
