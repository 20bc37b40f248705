"""Compares the outputs of contenders, since the time of a wrong link means nothing."""

from __future__ import annotations

import re

from pylink.inspect.compare import Ignore, differences
from pylink.inspect.image import Image, MalformedCubin
from pylink.inspect.layout import TOOL_NOTE

EQUAL = "equal byte by byte"
DIFFERS = "DIFFERS"
# From this SM number on linkers may allocate other scoreboards.
FIRST_SM_WITH_OTHER_SCOREBOARDS = 100
# Number of differing sections that are named.
MAX_NAMED_SECTIONS = 3

# pylink's note names the nvlink that it reproduces.
FOLLOWED_NVLINK = re.compile(rb"nvlink ([0-9]+(?:\.[0-9]+)+)")


def release_followed(output: bytes) -> str:
    """The release of nvlink that pylink followed; empty if the output does not name it."""
    try:
        image = Image(output)
    except MalformedCubin:
        return ""
    note = image.section(TOOL_NOTE)
    match = FOLLOWED_NVLINK.search(output, note.offset, note.offset + note.size) if note else None
    return match[1].decode() if match else ""


def may_be_equal(release: str, other: str) -> bool:
    """Return whether two releases may be the same; an unknown release may be any."""
    numbers = zip(release.split("."), other.split("."), strict=False)
    return not release or not other or all(first == second for first, second in numbers)


def compare_outputs(output: bytes, expected: bytes, other: str) -> str:
    """A text about the difference of an output from the output of `other`."""
    if output == expected:
        return f"{EQUAL} with {other}'s"
    try:
        image, expected_image = Image(output), Image(expected)
        if not differences(image, expected_image, Ignore(tool_note=True)):
            return f"equal with {other}'s except for the linker's own note"
        ignore = Ignore(
            tool_note=True, scoreboards=expected_image.sm >= FIRST_SM_WITH_OTHER_SCOREBOARDS
        )
        different = differences(image, expected_image, ignore)
    except MalformedCubin as problem:
        return f"{DIFFERS} from {other}'s: {problem}"
    if not different:
        return f"equal with {other}'s except for the linker's own note and scoreboards"
    sections = list(dict.fromkeys(entry.section or entry.kind for entry in different))
    more = (
        f" and {len(sections) - MAX_NAMED_SECTIONS} more"
        if len(sections) > MAX_NAMED_SECTIONS
        else ""
    )
    return f"{DIFFERS} from {other}'s in {', '.join(sections[:MAX_NAMED_SECTIONS])}{more}"


def is_different(answer: str) -> bool:
    """Return whether this text of `compare_outputs` is about a difference."""
    return answer.startswith(DIFFERS)
