"""Numbers that `pylink.size` shares with native code."""

from __future__ import annotations

# Purposes of the bytes of a payload, as reports print them, by their names in native code: CODE is
# PART_CODE there. Their numbers count from 0, in this order.
PARTS = {
    "CODE": "code",
    "CONSTANTS": "constants",
    "DATA": "data",
    "ATTRIBUTES": "attributes",
    "RELOCATIONS": "relocations",
    "NAMES": "names, symbols",
    "DEBUG": "debug",
    "MERCURY_CODE": "mercury code",
    "MERCURY_REST": "mercury rest",
    "HEADERS": "headers",
    "PADDING": "padding",
    "OTHER": "other",
    "PTX": "PTX",
    "LTOIR": "LTO-IR",
}
# A section name may end with a function's name after a dot. Only this many of its dots are tried.
MOST_DOTS = 16
