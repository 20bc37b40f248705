"""Finds the source lines of places in cubins.

`linemap.LineMap` reads the debug sections of one cubin, with pyelftools' reader of line number
programs; `places.Places` finds lines for the inputs of a link, by rows of its tables. Other modules
find places for diagnostics: `references` finds uses of a symbol, `recursion` cycles of calls,
`fields` the input of a field that cannot be relocated, `relocation` the line of a damaged
relocation. These modules are loaded only if a diagnostic is shown, or for remarks.

Reports use `linemap` for instructions, too. pyelftools is installed by the extra
`pylink-cuda[lines]`; without it, places have no lines.
"""

from __future__ import annotations

# Sections of line number programs, for source text and for PTX.
SOURCE_LINES, PTX_LINES = ".debug_line", ".nv_debug_line_sass"
LINE_SECTIONS = (SOURCE_LINES, PTX_LINES)
