"""Numbers of `pylink.size` that kernels share."""

from __future__ import annotations

# Purposes of the bytes of a payload, by their names in native code (PART_CODE). Their numbers count
# from 0, in this order.
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
MOST_DOTS = 16  # limit of the dots of a section name after which a function is searched
