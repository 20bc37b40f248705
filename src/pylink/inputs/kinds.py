"""Kinds of inputs, which `inputfiles.classify` finds by the first bytes (read/filekinds.pxd)."""

from __future__ import annotations

from pylink.facts.inputkinds import CUBIN, HOST, SHARED

ELF_MAGIC = b"\x7fELF"  # of cubins and of host objects
MACHINE = slice(18, 20)  # e_machine in an ELF header


# nvlink takes a file with this in its path, or its archive's path, for the device runtime library.
# It is linked if functions are undefined at its position or, without -r, another file needs it.
SYSTEM_LIBRARY = "cudadevrt"

# Kinds of files of the host, in which compilers store fat binaries.
OF_HOST = (HOST, SHARED)


def kind_of(head: bytes) -> int:
    """Return the kind of a file with this head."""
    from pylink._native.inputfiles import classify  # links classify all files at once

    classes = classify(head, bytes(8) + len(head).to_bytes(8, "little"))
    return classes[0] if classes else CUBIN
