"""Merging: which sections and symbols the output has, and what becomes of each relocation.

The output behaves as if its sections and symbols were born one after the other while the inputs
are read in command-line order; string tables, symbol order and section order all follow from
these births (docs/format-notes.md). Afterwards no section or symbol appears.
"""

def merge(
    arena: bytes,
    files: bytes,
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    symbol_entity: bytes,
    symbol_role: bytes,
    prototypes: bytes,
    pools: bytes,
    stand_ins: bytes,
    family: int,
    mode: int,
    traits: int,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]:
    """Give birth to every section and symbol of the output and sort the relocations.

    Tables as ``elfread.parse`` and ``resolve`` return them, ``pools`` as ``pools.born_kernels``
    does, ``stand_ins`` as ``folds.pair_sections`` does, or empty; ``family`` is 0 for sm_75 to
    sm_89, 1 for sm_90, 2 from sm_100 on; ``mode`` holds the bits of ``pylink.phases.init``,
    ``traits`` those of a release. Returns
    OutRow, OutSymbolRow, KeepRow, FixRow and RebuildRow tables; per input section i32 OutRow (-1:
    none) and u64 offset of its piece in bytes; .shstrtab and .strtab so far; the u32 .strtab offset
    of each prototype string; a byte per entity that any code refers to; a byte per kernel entity
    whose own code names extern arrays through an instance (-r).
    """
