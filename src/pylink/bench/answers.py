"""Compares the outputs of contenders (linkers), since the time of a wrong link means nothing."""

from __future__ import annotations

import re

from pylink.inspect.compare import Ignore, differences
from pylink.inspect.image import Image, MalformedCubin
from pylink.inspect.layout import TOOL_NOTE

# Beginnings of texts of `compare_outputs`; only texts about a difference begin with DIFFERS.
EQUAL = "equal byte by byte"
DIFFERS = "DIFFERS"
# From this SM number on, two linkers may use different scoreboards for the same code.
FIRST_SM_WITH_OTHER_SCOREBOARDS = 100
# Limit of the differing sections that are named; the rest are counted.
MAX_NAMED_SECTIONS = 3

# The note that pylink writes into its output names the release of nvlink that it followed.
FOLLOWED_NVLINK = re.compile(rb"nvlink ([0-9]+(?:\.[0-9]+)+)")


def release_followed(output: bytes) -> str:
    """Return the release of nvlink that pylink followed; empty if the output does not name it."""
    try:
        image = Image(output)
    except MalformedCubin:
        return ""
    note = image.section(TOOL_NOTE)
    match = FOLLOWED_NVLINK.search(output, note.offset, note.offset + note.size) if note else None
    return match[1].decode() if match else ""


def may_be_equal(release: str, other: str) -> bool:
    """Return whether two releases may be the same, like 13.0 and 13.0.88; empty means unknown."""
    numbers = zip(release.split("."), other.split("."), strict=False)
    return not release or not other or all(first == second for first, second in numbers)


def compare_outputs(output: bytes, expected: bytes, other: str) -> str:
    """Return a text about how `output` differs from `expected`, which the linker `other` wrote."""
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
    more_text = (
        f" and {len(sections) - MAX_NAMED_SECTIONS} more"
        if len(sections) > MAX_NAMED_SECTIONS
        else ""
    )
    return f"{DIFFERS} from {other}'s in {', '.join(sections[:MAX_NAMED_SECTIONS])}{more_text}"


def is_different(answer: str) -> bool:
    """Return whether this text of `compare_outputs` is about a difference."""
    return answer.startswith(DIFFERS)
