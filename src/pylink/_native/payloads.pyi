"""Copies and decompresses payloads of inputs into one arena."""

from collections.abc import Callable

from pylink._native.recycling import RecycledPages

def open_library(codec: int, path: bytes) -> bool:
    """Use the C library at `path` to decompress a codec; False if it cannot be used.

    `codec` is a Codec of `pylink.facts.picknumbers`. Without the library, `gather` calls `produce`
    for its payloads.
    """

def gather(
    picks: bytes,
    arenas: list[bytes],
    produce: Callable[[int], bytes],
    pages: RecycledPages | None = None,
) -> tuple[bytes, bytes]:
    """Copy or unpack the picked payloads to a new arena: (arena, extents), as of `read_files`.

    `picks` are rows of PICK of `pylink.rowformats`, with places in `arenas`; they are copied and
    decompressed by several threads. `produce(i)` returns the bytes of pick `i`. It is called, one
    by one, for payloads that are in no arena or not PICK_GOOD, or could not be decompressed. If it
    returns another number of bytes than the row says, the payload is empty in `extents`. A large
    arena lies in `pages`, if these are given. Exceptions of `produce` are passed on; `IndexError`
    for a pick whose arena is not in `arenas`, `ValueError` for a place outside of its arena,
    `MemoryError` if memory is exhausted.
    """

class Tail:
    """The last `size` bytes of an arena, which are still unused.

    `gather_in_place` allocates from them; threads may call it at the same time.
    """

    def __init__(self, arena: bytes, size: int) -> None: ...

def gather_in_place(picks: bytes, arenas: list[bytes], tail: Tail) -> tuple[bytes, bytes] | None:
    """Return what `gather` returns; uncompressed payloads in the arena of `tail` are not copied.

    Others are copied or decompressed into the tail. None if the tail is too short, or if `gather`
    would call `produce`. Also None if a payload that is not copied is not at a multiple of 8, or
    begins before the end of the payload of the pick before it.
    """
