"""Kinds of inputs, by their first bytes; native code has the numbers as IN_CUBIN and so on."""

from __future__ import annotations

CUBIN = 0  # also every other ELF file that is not HOST or SHARED; the reader of cubins checks it
HOST = 1  # an ELF file for the machine that runs the host program
FATBIN = 2
ARCHIVE = 3
THIN_ARCHIVE = 4
PTX = 5
LTOIR = 6
UNKNOWN = 7
EMPTY = 8
SHARED = 9  # a shared library of the host: an ELF file of type ET_DYN
