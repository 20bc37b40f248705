"""Kinds of inputs, recognized by their first bytes; kernels have them as IN_CUBIN and so on."""

from __future__ import annotations

CUBIN = 0  # and every ELF file that only the reader of cubins can judge
HOST = 1  # an ELF file for the machine that runs the host program
FATBIN = 2
ARCHIVE = 3
THIN_ARCHIVE = 4
PTX = 5
LTOIR = 6
UNKNOWN = 7
EMPTY = 8
SHARED = 9  # a shared library of the host, which its type tells
