"""Removes the mark-up for links from messages of rules, and holds the plots of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# References are one of:
# @section:<id>:<text>@, @url:<text>:<link>@, @sass:<address>:<text>@, @source:<file>:<line>:<text>@
REFERENCE = re.compile(
    r"@section:(?P<section>[^:@]*):(?P<section_text>[^@]*)@"
    r"|@url:(?P<url_text>[^:@]*):(?P<url>[^@]*)@"
    r"|@sass:(?P<address>[^:@]*):(?P<sass_text>[^@]*)@"
    r"|@source:(?P<file>[^:@]*):(?P<line>[^:@]*):(?P<source_text>[^@]*)@"
)


def strip_markup(text: str) -> str:
    """Replace mark-up by its text; a URL, code address or source line follows it in brackets."""

    def replace(match: re.Match[str]) -> str:
        if match["url"] is not None:
            return f"{match['url_text']} ({match['url']})"
        if match["address"] is not None:
            return f"{match['sass_text']} ({match['address']})"
        if match["file"] is not None:
            return f"{match['source_text']} ({match['file']}:{match['line']})"
        return match["section_text"] or ""

    return REFERENCE.sub(replace, text)


@dataclass(slots=True)
class Figures:
    """The plots of a page as `<svg>` elements; `note` is the reason if plots are missing.

    `comparison` shows phases of several reports, `growth` the time of links by their size, and
    `costs` the cost of routines by the size of the input.
    """

    comparison: str = ""
    growth: str = ""
    costs: list[str] = field(default_factory=list)
    note: str = ""
