"""The passes that emit remarks, a module each.

`PASSES` maps the name of a pass to the tag of the phase after which it runs, and to the module of
this package that has its `emit(result, remarks)`: `result` is what the phase returned.
"""

from __future__ import annotations

PASSES: dict[str, tuple[str, str]] = {}
