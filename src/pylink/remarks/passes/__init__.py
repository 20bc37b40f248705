"""The passes that emit remarks, a module each.

`PASSES` maps the name of a pass to the tag of the phase after which it runs, and to the module of
this package with its `emit(result, remarks)`: `result` is the result of the phase. Passes read only
finished tables, so phases know nothing of remarks, and a link without remarks costs nothing extra.
If the tables do not store a decision, the pass makes it again. Only comparisons of Mercury sections
are too expensive for that: merge stores them, if an observer asks for it.
"""

from __future__ import annotations

MERC_DEDUP = "merc-dedup"

# By name of the pass: the tag of the phase after which it runs, and its module beside this one.
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
