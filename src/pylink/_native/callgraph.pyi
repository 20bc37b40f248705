"""Contents of .nv.callgraph and .nv.prototype."""

def emit_callgraph(
    calls: bytes, entities: bytes, symbol_index: bytes, prototype_offsets: bytes, once: bool
) -> tuple[bytes, bytes]:
    """Contents of .nv.callgraph and .nv.prototype, by birth of the function that rows begin with.

    Direct and indirect calls of one function come newest first; the other rows once a function.
    With ``once`` (-r) a direct call that copies of the function share stands at the oldest's place.
    """
