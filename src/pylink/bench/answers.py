"""Whether contenders made the same file, since time says nothing of a link that is wrong."""

from __future__ import annotations

import re

from pylink.inspect.compare import Ignore, differences
from pylink.inspect.image import Image, MalformedCubin
from pylink.inspect.layout import TOOL_NOTE

EQUAL = "equal byte by byte"
DIFFERS = "DIFFERS"
# From here on any linker may allocate scoreboards anew.
FIRST_WITH_SCOREBOARDS = 100
# Sections that are named of those that differ.
NAMED = 3

# pylink's note names the nvlink whose output it made.
FOLLOWED = re.compile(rb"nvlink ([0-9]+(?:\.[0-9]+)+)")


def release_followed(output: bytes) -> str:
    """The release of nvlink that pylink says it followed; empty where the output says none."""
    try:
        image = Image(output)
    except MalformedCubin:
        return ""
    note = image.section(TOOL_NOTE)
    match = FOLLOWED.search(output, note.offset, note.offset + note.size) if note else None
    return match[1].decode() if match else ""


def may_be_equal(release: str, other: str) -> bool:
    """Whether two releases are one, as far as both say; one that is not known may be any."""
    numbers = zip(release.split("."), other.split("."), strict=False)
    return not release or not other or all(mine == two for mine, two in numbers)


def compared(output: bytes, expected: bytes, other: str) -> str:
    """How what a contender made differs from what `other` did, in words."""
    if output == expected:
        return f"{EQUAL} with {other}'s"
    try:
        ours, theirs = Image(output), Image(expected)
        if not differences(ours, theirs, Ignore(tool_note=True)):
            return f"equal with {other}'s but for the linker's own note"
        ignore = Ignore(tool_note=True, scoreboards=theirs.sm >= FIRST_WITH_SCOREBOARDS)
        different = differences(ours, theirs, ignore)
    except MalformedCubin as problem:
        return f"{DIFFERS} from {other}'s: {problem}"
    if not different:
        return f"equal with {other}'s but for the linker's own note and scoreboards"
    sections = list(dict.fromkeys(entry.section or entry.kind for entry in different))
    more = f" and {len(sections) - NAMED} more" if len(sections) > NAMED else ""
    return f"{DIFFERS} from {other}'s in {', '.join(sections[:NAMED])}{more}"


def is_different(answer: str) -> bool:
    """Whether words of `compared` say so."""
    return answer.startswith(DIFFERS)
