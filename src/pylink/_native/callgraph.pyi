"""Contents of .nv.callgraph and .nv.prototype."""

from pylink._native.results import PlacedTables

def emit_callgraph(placed: PlacedTables) -> tuple[bytes, bytes]:
    """Make the contents of .nv.callgraph and .nv.prototype: block by block, by function.

    Functions are in creation order. Direct calls of a function, its calls through a pointer and
    their candidates come newest first; of other rows a function has one. With -r, a direct call or
    a candidate that several copies of the function have is the oldest of these rows.
    """
