"""The header of an archive member: text in fields of fixed size. Offsets and sizes in bytes."""

from __future__ import annotations

HEADER_SIZE = 60
NAME_SIZE = 16  # bytes of the name, which is the first field
SIZE_OFFSET = 48  # where the member's size begins, a decimal number
SIZE_DIGITS = 10  # bytes of that number, with blanks
END_OFFSET = 58  # where the two bytes begin that end each header
