"""Reads dynamic symbols about device code in shared libraries of the host."""

from mmap import mmap

def find_symbols(
    data: bytes | bytearray | memoryview | mmap, offset: int, size: int
) -> tuple[int, bytes, bool]:
    """Find the symbols about device code in a file's `size` bytes: (state, rows, has_runtime).

    The file begins at `offset` of `data`. The state is a LibraryState, and the rows are rows of
    DYNAMIC of `pylink.rowformats`, each with a DynamicKind (`pylink.facts.picknumbers`). The state
    is NO_CODE for a library with neither relocatable device code nor a device link of such code,
    and for any other file. Offsets of names in the rows are relative to `offset`. `has_runtime`
    says that the library contains a CUDA runtime: it needs `dlsym`, but no function of a runtime
    from another file. `IndexError` for a file that runs past the data.
    """
