"""What an input is, by its first bytes. `header.py` makes IN_CUBIN and the like of these."""

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
