"""Compresses payloads with the library of the package `zstandard`."""

def open_library(codec: int, path: bytes) -> bool:
    """Use the library at `path` for a codec from now on; False if it cannot decompress.

    `codec` is a Codec of `pylink.facts.picknumbers`.
    """

def frame_of(payload: bytes, level: int, *, checked: bool = True) -> bytes | None:
    """Compress the payload to one Zstandard frame; with `checked`, decompress and compare it.

    It calls the library of the package `zstandard`, so the frame is equal to the package's.

    None if `open_library` found no library that compresses, if compressing fails, or if
    decompressing does not give the payload.
    """
