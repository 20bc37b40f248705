"""Strict comparison of two linked images, with a line of text for each difference.

`compare(actual, expected)` returns an empty list when the images are equal in every byte but
* the tool's own note, the first of `.note.nv.tkinfo`, and the file offsets its size moves,
* from sm_100 on, bits 110 to 121 of each instruction in `.text.*` (scoreboards and wait mask),
  which any linker may allocate anew.
Everything else is compared: headers, section order, string tables byte by byte, padding. Code of
links that differs in these bits is kept, and checked for hazards at the end of the run (`hazards`);
`image_differences` compares images that no linker made, and keeps nothing.
"""

from __future__ import annotations

from itertools import groupby

from hazards import collected

from pylink.inspect.compare import Ignore, differences
from pylink.inspect.difference import Difference
from pylink.inspect.image import Image, MalformedCubin

FIRST_MERCURY_SM = 100
SHOWN = 4  # differences to list for one section


def compare(actual: bytes, expected: bytes) -> list[str]:
    """Return differences of the linked image `actual` from `expected`, likeliest causes first."""
    if actual == expected:
        return []
    collected.note(actual, expected)
    return image_differences(actual, expected)


def image_differences(actual: bytes, expected: bytes) -> list[str]:
    """Return the differences of two images, which may be damaged; like `compare`."""
    expected_image = Image(expected)
    ignore = Ignore(tool_note=True, scoreboards=expected_image.sm >= FIRST_MERCURY_SM)
    try:
        image_changes = differences(Image(actual), expected_image, ignore)
    except MalformedCubin as problem:
        return [f"not a readable image: {problem}"]
    lines = []
    for _, group in groupby(
        image_changes, key=lambda difference: (difference.kind, difference.section)
    ):
        of_section = list(group)
        lines += [_line(difference) for difference in of_section[:SHOWN]]
        if len(of_section) > SHOWN:
            lines[-1] += f"; {len(of_section)} differences"
    return lines


def _line(difference: Difference) -> str:
    """Return the line about one difference."""
    note = f" ({difference.note})" if difference.note else ""
    got = difference.first if difference.first is not None else "nothing"
    expected_value = difference.second if difference.second is not None else "nothing"
    return f"{difference.kind} {difference.place}{note}: got {got}; expected {expected_value}"
