"""--preserve-relocs: the record of relocations that the link resolved (docs/format-notes.md)."""

def record_resolved(
    entities: bytes,
    outs: bytes,
    out_symbols: bytes,
    keeps: bytes,
    fixes: bytes,
    out_of: bytes,
    base: bytes,
    family: int,
) -> tuple[bytes, bytes]:
    """List every FixRow with its ``.nv.resolvedrela`` section: (outs, keeps).

    The entries are KeepRow rows behind those of ``keeps``, each list newest first; from sm_100 on
    only those of shared memory. Mercury records get their sections here, as twins of the plain
    ones.
    """

def names_deleted(entities: bytes, outs: bytes, fixes: bytes, reserved: int) -> bool:
    """Whether debug data refers to an extern array that has lost its symbol.

    That matters where ``.nv_debug.shared`` has variables, more than the ``reserved`` bytes.
    """
