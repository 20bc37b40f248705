def memory_use(outs: bytes) -> tuple[int, list[tuple[int, int]]]: ...
def kernel_use(
    entities: bytes,
    functions: bytes,
    outs: bytes,
    blobs: list[bytes],
    spans: list[bytes],
    executable: bool,
) -> list[tuple[int, int, int, int, int, list[tuple[int, int]]]]: ...
def call_lists(
    entities: bytes, calls: bytes, prototypes: bytes
) -> list[tuple[int, int, list[int]]]: ...
def propagations(
    arena: bytes,
    sections: bytes,
    entities: bytes,
    functions: bytes,
    calls: bytes,
    prototypes: bytes,
    outs: bytes,
) -> list[tuple[int, int, int, int]]: ...
