"""Blocks and records of an LLVM bitstream; what a record means is for the caller to know.

A damaged file costs no more than its size. Errors are ``ValueError`` and name the byte. Source: the
LLVM Bitstream File Format.
"""

# Bytes of a row of `find_blocks`.
BLOCK_ROW: int

def find_blocks(data: bytes, start: int) -> bytes:
    """The blocks from byte ``start`` to the end of the file; zeros after them are none.

    A row (number u32, width of abbreviation ids u32, start u64, end u64) each, the last two in
    bytes.
    """

def read_block_info(data: bytes, start: int, end: int, width: int) -> bytes:
    """The abbreviations that a block info block defines, for `read_records`.

    The arguments are from the block's row.
    """

def read_records(
    data: bytes, blocks: bytes, first: int, last: int, abbreviations: bytes
) -> list[list[tuple[int | bytes, ...]]]:
    """The records of the blocks in rows ``first`` to ``last`` of the table of `find_blocks`.

    A list for each block; a record is a tuple of its number and its operands, the last of which is
    bytes when it is a blob. ``ValueError`` also for a block inside a block.
    """
