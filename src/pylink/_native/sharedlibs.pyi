"""Shared libraries of the host: what their dynamic symbols say of the device code in them."""

from mmap import mmap

def find_symbols(
    data: bytes | bytearray | memoryview | mmap, offset: int, size: int
) -> tuple[int, bytes, bool]:
    """What a file, ``size`` bytes of ``data``, says: (state, rows, has_runtime).

    State and rows are those of ``pylink.inputs.sharedlib``; without relocatable device code, or
    for what is not a shared library, the state is 0. Names in the rows count from ``offset``.
    ``has_runtime`` says that the library has a CUDA runtime of its own. ``IndexError`` for a file
    that runs past the data.
    """
