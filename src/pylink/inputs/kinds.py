"""What an input is, as `inputfiles.classify` tells by its first bytes; as in read/filekinds.pxd."""

from __future__ import annotations

ELF_MAGIC = b"\x7fELF"  # of cubins and of host objects
MACHINE = slice(18, 20)  # e_machine in an ELF header

CUBIN = 0
HOST = 1
FATBIN = 2
ARCHIVE = 3
THIN_ARCHIVE = 4
PTX = 5
LTOIR = 6
UNKNOWN = 7
EMPTY = 8
SHARED = 9  # a shared library of the host, which its type tells

# A file with this in its name, that of its archive and folder included, is the device runtime
# library to nvlink: taken only when functions are undefined where it stands.
SYSTEM_LIBRARY = "cudadevrt"

# What holds fat binaries that the compiler of the host put there.
OF_HOST = (HOST, SHARED)


def kind_of(head: bytes) -> int:
    """What a file is that starts so."""
    from pylink._native.inputfiles import classify  # links ask it of all at once

    classes = classify(head, bytes(8) + len(head).to_bytes(8, "little"))
    return classes[0] if classes else CUBIN
