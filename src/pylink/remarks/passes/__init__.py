"""The passes that emit remarks, a module each.

`PASSES` maps the name of a pass to the tag of the phase after which it runs, and to the module of
this package that has its `emit(result, remarks)`: `result` is what the phase returned. All works
from finished tables: a link whose remarks nobody asks for pays nothing, and the phases know nothing
of remarks. What the tables do not keep, a pass decides once more; how Mercury sections were
compared, merge keeps for questions.
"""

from __future__ import annotations

MERC_DEDUP = "merc-dedup"

PASSES: dict[str, tuple[str, str]] = {
    "symbol-resolution": ("merge", "symbols"),
    "dce": ("merge", "dce"),
    "regcount": ("merge", "registers"),
    "stack-size": ("merge", "stack"),
    MERC_DEDUP: ("merge", "dedup"),
    "finalize": ("merge", "schedules"),
    "shared-layout": ("layout", "shared"),
    "debug": ("layout", "debug"),
    "relocate": ("relocate", "relocations"),
}
