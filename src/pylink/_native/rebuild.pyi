"""Between the tables of the link and ``pylink._native.debug``, from sm_100 on."""

def find_debug(arena: bytes, sections: bytes, outs: bytes, name: bytes) -> int:
    """The OutRow of the plain debug section of that name, or -1."""

def pieces_of(
    sections: bytes, out_of: bytes, entities: bytes, out_symbols: bytes, rebuilds: bytes, out: int
) -> tuple[bytes, bytes, bytes, bytes]:
    """What the rebuild of section ``out`` starts from: (pieces, relocations, numbers, inputs).

    The first two are tables of ``pylink._native.debug``; ``numbers`` are the RebuildRow numbers
    (i32) of the relocation rows, ``inputs`` the input sections (i32) of the pieces.
    """

def headers_of(
    sections: bytes, out_of: bytes, base: bytes, fixes: bytes, outs: bytes, out: int
) -> tuple[bytes, bytes]:
    """Mercury twins of the pieces of line section ``out``, and their resolved header fields.

    Both are empty when no field is resolved there, or when a piece has no twin.
    """

def live_names(arena: bytes, symbols: bytes, entities: bytes) -> bytes:
    """Names of the output's functions, each ended by NUL."""

def adopt(
    outs: bytes, keeps: bytes, rebuilds: bytes, results: list[tuple[int, bytes, bytes, int]]
) -> tuple[bytes, bytes]:
    """Enter rebuilt sections into the tables: (outs, keeps).

    ``results`` has (OutRow, RebuildRow numbers, moved rows, size in bytes) for each.
    """

def retarget(
    fixes: bytes, keeps: bytes, base: bytes, inputs: bytes, units: bytes, out: int
) -> tuple[bytes, bytes]:
    """Let references to line units name their places after the rebuild: (fixes, keeps).

    ``inputs`` and ``units`` describe the rebuilt section ``out``.
    """
