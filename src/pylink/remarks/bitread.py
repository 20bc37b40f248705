"""Reads remarks from a bitstream of either container version."""

from __future__ import annotations

from struct import iter_unpack

from pylink._native.bitstream import find_blocks, read_block_info, read_records
from pylink.facts.bitstreamnumbers import BLOCK_INFO
from pylink.remarks import container
from pylink.remarks.record import MalformedRemarks, Remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    # A record of a block: its code, then its operands.
    Record = tuple[int | bytes, ...]
    # A block: its id, such as REMARK; the width of abbreviation ids in bits; and the offsets of
    # the start and the end (exclusive) of its contents in the file.
    Block = tuple[int, int, int, int]

# The struct format of a row that `find_blocks` returns for a Block.
_ROW = "<IIQQ"

# Greatest line and column; a remark with a greater one is malformed.
_MAX_POSITION = 0xFFFFFFFF

# Remark blocks that are read at once.
_BATCH = 1024


def read_bitstream(data: bytes, name: str) -> Iterator[Remark]:
    """Yield the remarks of a file, whose contents are `data`, in order.

    Raises MalformedRemarks for invalid contents; its text begins with `name`.
    """
    try:
        yield from _Container(data).remarks()
    except ValueError as error:
        raise MalformedRemarks(f"{name}: {error}") from None


class _Container:
    """One file of remarks, with the contents of its meta blocks: version and string table.

    Raises ValueError if the file is malformed. The text has the byte of the error, if it is known.
    """

    def __init__(self, data: bytes) -> None:
        if data[: len(container.MAGIC)] != container.MAGIC:
            raise ValueError("byte 0x0: the file does not start with RMRK")
        self.data = data
        self.rows = find_blocks(data, len(container.MAGIC))  # packed, for `read_records`
        self.blocks: list[Block] = list(iter_unpack(_ROW, self.rows))
        if not self.blocks or self.blocks[0][0] != BLOCK_INFO:
            raise ValueError("byte 0x4: the block info block is missing")
        _, width, start, end = self.blocks[0]
        self.abbreviations = read_block_info(data, start, end, width)
        self.version: int | None = None  # of the container
        self.strings: list[str] | None = None
        self.table_block = 0  # position in `blocks` of the meta block with the string table
        remarks = [i for i, block in enumerate(self.blocks) if block[0] == container.REMARK]
        # Positions in `blocks` of the first remark, and of the block after the last remark. Only
        # remarks may stand between, and only meta blocks elsewhere after the block info block.
        self.first = remarks[0] if remarks else len(self.blocks)
        self.end = remarks[-1] + 1 if remarks else self.first
        for position in (*range(1, self.first), *range(self.end, len(self.blocks))):
            self._read_meta(position)
        if self.version is None:
            raise ValueError("the container info is missing")
        if not remarks:
            raise ValueError("there are no remarks")
        if self.strings is None:
            raise ValueError("the string table is missing")
        if (self.table_block < self.first) != (self.version == container.LLVM_19):
            start = self.blocks[self.table_block][2]
            raise ValueError(f"byte {start:#x}: the string table is not allowed here")

    def _read_records(self, first: int, end: int) -> list[list[Record]]:
        """Return the records of each of the blocks at positions `first` to `end` (exclusive)."""
        return read_records(self.data, self.rows, first, end, self.abbreviations)

    def _read_meta(self, position: int) -> None:
        """Read and check the meta block at a position in `blocks`."""
        number, _, start, _ = self.blocks[position]
        if number != container.META:
            raise ValueError(f"byte {start:#x}: block {number} is not allowed in a file of remarks")
        for record in self._read_records(position, position + 1)[0]:
            match record:
                case (container.CONTAINER, int(version), int(kind)):
                    if version not in container.STANDALONE:
                        raise ValueError(f"container version {version} is unknown")
                    if kind != container.STANDALONE[version]:
                        raise ValueError(
                            "the file shares its remarks with another, which is not read"
                        )
                    self.version = version
                case (container.VERSION, int(version)):
                    if version != container.REMARK_VERSION:
                        raise ValueError(f"remark version {version} is unknown")
                case (container.STRINGS, bytes(table)):
                    self.table_block = position
                    self.strings = _split_strings(table)
                case (container.EXTERNAL, bytes(path)):
                    raise ValueError(
                        f"the remarks are in another file, {path.decode(errors='replace')}"
                    )
                case _:
                    raise ValueError(f"byte {start:#x}: unknown record {record[0]!r}")

    def remarks(self) -> Iterator[Remark]:
        """Yield the remarks of the container's blocks; ValueError names the byte of a wrong one."""
        assert self.strings is not None
        for first in range(self.first, self.end, _BATCH):
            end = min(first + _BATCH, self.end)
            for block, records in zip(
                self.blocks[first:end], self._read_records(first, end), strict=True
            ):
                if block[0] != container.REMARK:
                    raise ValueError(f"byte {block[2]:#x}: block {block[0]} among the remarks")
                try:
                    yield _decode_remark(records, self.strings)
                except ValueError as error:
                    raise ValueError(f"byte {block[2]:#x}: {error}") from None
                except IndexError:
                    count = len(self.strings)
                    raise ValueError(
                        f"byte {block[2]:#x}: a string beyond the {count} of the table"
                    ) from None


def _split_strings(table: bytes) -> list[str]:
    """Return the strings of a string table; bytes that are not UTF-8 become surrogates."""
    if table and table[-1]:
        raise ValueError("the string table does not end with a NUL")
    return table.decode("utf-8", "surrogateescape").split("\0")[:-1]


def _decode_remark(records: list[Record], strings: list[str]) -> Remark:
    """Decode the remark that the records of one block describe; `strings` is the string table.

    IndexError for the number of a string that the table lacks, ValueError for other errors.
    """
    header: tuple[int, str, str, str] | None = None
    location: tuple[str | None, int, int] = (None, 0, 0)
    hotness: int | None = None
    args: list[tuple[str, str, str | None, int, int]] = []
    for record in records:
        match record:
            case (container.ARGUMENT, int(key), int(value)):
                args.append((strings[key], strings[value], None, 0, 0))
            case (container.HEADER, int(kind), int(name), int(pass_name), int(function)):
                header = kind, strings[pass_name], strings[name], strings[function]
            case (container.LOCATION, int(file), int(line), int(column)):
                location = strings[file], line, column
            case (container.HOTNESS, int(value)):
                hotness = value
            case (
                container.ARGUMENT_WITH_LOCATION,
                int(key),
                int(value),
                int(file),
                int(line),
                int(column),
            ):
                args.append((strings[key], strings[value], strings[file], line, column))
            case _:
                raise ValueError(
                    f"a remark has no record {record[0]!r} of {len(record) - 1} operands"
                )
    if header is None:
        raise ValueError("a remark without a header")
    source_file, source_line, source_column = location
    if max(source_line, source_column, *(max(arg[3:]) for arg in args)) > _MAX_POSITION:
        raise ValueError("a line or column has more than 32 bits")
    return Remark(
        *header,
        file=source_file,
        line=source_line,
        column=source_column,
        hotness=hotness,
        args=args,
    )
