"""Numbers of the LLVM bitstream format, which both the writer and the reader of remarks use.

`header.py` writes these constants for native code. Source: the LLVM Bitstream File Format.
"""

from __future__ import annotations

# Values of the abbreviation id in front of each record. From FIRST_ABBREVIATION on, they are the
# abbreviations that are defined for the block, there or in the block BLOCK_INFO.
END_BLOCK = 0
ENTER_BLOCK = 1
DEFINE = 2
UNABBREVIATED = 3
FIRST_ABBREVIATION = 4

# Encodings of an operand in an abbreviation. The format marks a literal by a bit instead of a
# number; LITERAL is pylink's own.
LITERAL = 0
FIXED = 1
VBR = 2
ARRAY = 3
CHAR6 = 4
BLOB = 5

# Id of the block that defines abbreviations of other blocks, and code of its record that says for
# which block the following definitions are.
BLOCK_INFO = 0
SET_BLOCK = 1

OUTER_WIDTH = 2  # bits of an abbreviation id outside of blocks
