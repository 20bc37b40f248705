"""Blocks and records of an LLVM bitstream; callers interpret the records.

Time and memory are bounded by the file's size. Errors are `ValueError` and name the byte. Source:
the LLVM Bitstream File Format.
"""

# Bytes of a row of `find_blocks`.
BLOCK_ROW: int

def find_blocks(data: bytes, start: int) -> bytes:
    """The blocks from byte `start` to the end of the file; trailing zeros are ignored.

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
    """The records of the blocks in rows `first` to `last` of the table of `find_blocks`.

    A list for each block; a record is a tuple of its number and its operands, the last of which is
    bytes when it is a blob. `ValueError` also for a block inside a block.
    """
