"""The header of an archive member: text in fields of fixed size. Sizes and offsets are bytes."""

from __future__ import annotations

HEADER_SIZE = 60
NAME_SIZE = 16  # of the name, which is the first field
SIZE_OFFSET = 48  # of the field with the member's size, a decimal number
SIZE_DIGITS = 10  # of that field, with the blanks after the number
END_OFFSET = 58  # of the two bytes that end each header
