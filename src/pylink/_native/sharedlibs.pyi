"""Reads dynamic symbols about device code in shared libraries of the host."""

from mmap import mmap

def find_symbols(
    data: bytes | bytearray | memoryview | mmap, offset: int, size: int
) -> tuple[int, bytes, bool]:
    """Find the symbols of a file, `size` bytes of `data`: (state, rows, has_runtime).

    State and rows are those of `pylink.inputs.sharedlib`; the state is 0 without relocatable device
    code, and for other files. Offsets of names in the rows are relative to `offset`.
    `has_runtime` says that the library has a CUDA runtime of its own. `IndexError` for a file
    that runs past the data.
    """
