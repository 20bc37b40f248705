"""Where the bytes of device code are, by file, kind, target, unit, part, template and function.

    sizes = pylink.size.measure(["libfoo.so"])
    for row in pylink.size.rows(sizes, ("target", "kind")):
        print(row.keys, row.installed)

Nothing here writes to what it reads.
"""

from pylink.size.levels import LEVELS, Row, Selection, rows
from pylink.size.model import File, Leaf, Sizes
from pylink.size.walk import measure, measure_bytes

__all__ = [
    "LEVELS",
    "File",
    "Leaf",
    "Row",
    "Selection",
    "Sizes",
    "measure",
    "measure_bytes",
    "rows",
]
