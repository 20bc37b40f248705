"""Severity numbers, those of the EDG front end, and what follows from each.

Values 9 and above are fatal: the link stops once such a record was rendered. A severity up to
`DISCRETIONARY` may be changed by number or name, a harder one may not.
"""

from __future__ import annotations

NOTE = 2
REMARK = 4
WARNING = 5
CAUTION = 6
DISCRETIONARY = 7
ERROR = 8
CATASTROPHE = 9
COMMAND_LINE = 10
INTERNAL = 11

NAMES = {
    NOTE: "note",
    REMARK: "remark",
    WARNING: "warning",
    CAUTION: "caution",
    DISCRETIONARY: "discretionary error",
    ERROR: "error",
    CATASTROPHE: "catastrophe",
    COMMAND_LINE: "command-line error",
    INTERNAL: "internal error",
}
