"""Contents of .nv.callgraph and .nv.prototype."""

from pylink._native.tables import PlacedTables

def emit_callgraph(placed: PlacedTables) -> tuple[bytes, bytes]:
    """Contents of .nv.callgraph and .nv.prototype, by creation of the function that rows begin
    with.

    Direct and indirect calls of one function come newest first; the other rows once a function.
    With -r a direct call that copies of the function share stands at the oldest's place.
    """
