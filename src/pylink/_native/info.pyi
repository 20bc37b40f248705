"""EIATTR records: .nv.info, .nv.info.F, their mercury twins, and the call graph.

Records of the inputs are kept in reverse order; kernels take over what the functions they reach
need (docs/format-notes.md, "Attributes of kernels"). Tables are packed rows of ``rows.pxd``.
"""

def emit_info(
    arena: bytes,
    files: bytes,
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    symbol_entity: bytes,
    symbol_role: bytes,
    calls: bytes,
    prototypes: bytes,
    functions: bytes,
    outs: bytes,
    out_of: bytes,
    symbol_index: bytes,
    section_symbol_index: bytes,
    family: int,
    executable: bool,
    inherited: bytes,
    closing: bytes,
) -> tuple[bytes, bytes, list[int]]:
    """Contents of every information section: (blob, spans, mixed).

    `inherited` is the packed table of `pylink.facts.inherited`, `closing` the records that end
    those of each function. The spans are SpanRow rows: the OutRow that each part of the blob
    belongs to. `mixed` are the entities of kernels that reach functions for one CTA and for a pair
    of them.
    """

def has_file_records(
    arena: bytes,
    files: bytes,
    sections: bytes,
    entities: bytes,
    symbol_entity: bytes,
    symbol_role: bytes,
    executable: bool,
) -> bool:
    """Whether .nv.info of the output has any record; nvlink leaves out an empty one."""
