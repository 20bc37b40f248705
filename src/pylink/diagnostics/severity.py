"""Severity numbers, which are those of the EDG front end.

Values 9 (`CATASTROPHE`) and above are fatal: the link stops after such a record was rendered.
Options can change severities up to `DISCRETIONARY`.
"""

from __future__ import annotations

# Graver severities have greater numbers; 3 is not used.
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
