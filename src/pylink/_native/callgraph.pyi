"""Contents of .nv.callgraph and .nv.prototype."""

from pylink._native.results import PlacedTables

def emit_callgraph(placed: PlacedTables) -> tuple[bytes, bytes]:
    """Make the contents of .nv.callgraph and .nv.prototype: block by block, by function.

    A block has the rows of one kind, e.g. all direct calls. Functions are in creation order. Direct
    calls of a function, its calls through a pointer and their candidates come newest first; a
    function has at most one row of each other kind. With -r, if several copies of the function have
    the same direct call or candidate, the oldest of these rows stays.
    """
