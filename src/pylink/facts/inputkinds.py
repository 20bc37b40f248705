"""Kinds of inputs, by their first bytes; native code has the numbers as IN_CUBIN and so on."""

from __future__ import annotations

CUBIN = 0  # also an ELF file that is not HOST or SHARED; the reader of cubins says what is wrong
HOST = 1  # a 64-bit, little-endian ELF file for another machine than EM_CUDA
FATBIN = 2
ARCHIVE = 3
THIN_ARCHIVE = 4
PTX = 5
LTOIR = 6
UNKNOWN = 7
EMPTY = 8
SHARED = 9  # a shared library of the host, as the caller says: it begins like HOST
