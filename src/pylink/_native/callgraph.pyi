"""Contents of .nv.callgraph and .nv.prototype."""

from pylink._native.tables import PlacedTables

def emit_callgraph(placed: PlacedTables) -> tuple[bytes, bytes]:
    """Make the contents of .nv.callgraph and .nv.prototype, by creation of the rows' functions.

    Direct calls, calls through a pointer and their candidates come newest first; other rows once
    for each function. With -r, a direct call or a candidate that copies of the function share has
    the position of the oldest one.
    """
