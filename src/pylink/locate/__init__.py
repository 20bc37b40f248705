"""From a place in a cubin to the source line that it was compiled from.

`linemap.LineMap` reads the debug sections of one cubin, with pyelftools' reader of line number
programs; `places.Places` answers for the inputs of a link, by rows of its tables. The others find
what a diagnostic has to show: `references` where a symbol is used, `recursion` which calls lead
back, `fields` and `relocation` what a relocation belongs to. All of it runs when somebody looks at
a record or asks for remarks; a link with nothing to say loads none of these modules.

Reports ask `linemap` about instructions, too. pyelftools comes with the extra `pylink-cuda[lines]`;
without it, places have no line.
"""

from __future__ import annotations

# Line number programs about source text, and those about PTX.
SOURCE_LINES, PTX_LINES = ".debug_line", ".nv_debug_line_sass"
LINE_SECTIONS = (SOURCE_LINES, PTX_LINES)
