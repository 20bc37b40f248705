"""Blocks and records of an LLVM bitstream; callers interpret the records.

Time and memory are bounded by the file's size. Errors are `ValueError` and name the byte. Source:
the LLVM Bitstream File Format.
"""

def find_blocks(data: bytes, start: int) -> bytes:
    """Return a BlockRow for each block from byte `start` on; zeros at the end are ignored.

    Such a row is (number u32, width of abbreviation ids in bits u32, start u64, end u64); the
    block's contents are from byte `start` to `end` of the file.
    """

def read_block_info(data: bytes, start: int, end: int, width: int) -> bytes:
    """Return the abbreviations that a block info block defines, for `read_records`.

    `start`, `end` and `width` are those of the block's row.
    """

def read_records(
    data: bytes, blocks: bytes, first: int, last: int, abbreviations: bytes
) -> list[list[tuple[int | bytes, ...]]]:
    """Return a list of records for each block from row `first` to before `last`.

    `blocks` is the table of `find_blocks`, `abbreviations` a result of `read_block_info`. A record
    is a tuple of its code and its operands; a blob, which is the last operand, is bytes.
    `ValueError` also for a block inside a block.
    """
