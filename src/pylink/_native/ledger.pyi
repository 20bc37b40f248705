"""Counts the bytes of device code: payloads by part and function.

Parts are numbers of `pylink.size.model.PARTS`. Calls for one ledger may come from several
threads: long work runs without the GIL.
"""

from typing import TypeAlias

# See `Ledger.measure`.
Payload: TypeAlias = tuple[bytes | None, int, int, int, int, int, int, int, int, bool]
Measured: TypeAlias = tuple[int, bytes, bytes, bytes, int, int, bytes | None]

def use_codec(codec: int, path: bytes) -> bool:
    """Decompress with the library at `path` from now on; False if it lacks the function."""

def return_memory() -> None:
    """Return memory of large payloads to the system as soon as they are counted.

    This is a setting of the whole process. Otherwise the C library keeps memory for later use, 40
    MB while a wheel of 250 MB is measured.
    """

class Ledger:
    """The measured bytes, a row for each part of each function of each entry."""

    def measure(
        self,
        payloads: list[Payload],
        file: int = -1,
        level: int = 0,
        *,
        keep_frames: bool = False,
    ) -> list[Measured | None]:
        """Decompress and count payloads, and compress the marked ones again.

        A payload is (bytes, offset, packed, full, codec, kind, entry, installed, download,
        compressed). Without bytes it is read from `file`, a descriptor, at the offset. Its `packed`
        bytes become `full`. `codec` is 0 or a codec of `pylink.inputs.payload`. The rows of a
        payload share the installed and the downloaded bytes in proportion to their sizes.

        A result is e_type, the bytes that name the source file, two fingerprints, an entry, the
        size of a frame, and the frame. The fingerprints of a linked cubin cover everything except
        for notes and the chip; the second also ignores a mark in attributes that the driver needs
        on some chips (SW2861232_WAR). Other payloads have empty ones. The entry has equal contents
        and is compressed instead of this one (-1: none). The size is that of the Zstandard frame of
        `level`, 0 if none was made. The frame is None without `keep_frames`.

        None for a payload that cannot be decompressed, and for a cubin with damaged headers; these
        are not counted. EOFError if the file is too short, OSError if it cannot be read.
        """

    def contents_compressed(self) -> int:
        """The number of different payloads that were to be compressed again."""

    def repeats(self, entry_groups: bytes) -> list[tuple[int, int, int, int]]:
        """Functions and data of linked cubins that an earlier entry of the group has.

        Rows are (group, function or 0 for data, entry, bytes). Functions of a group have equal
        code, constants, relocations by symbol and attributes; the bytes are those of the code. Data
        of fewer than 256 bytes does not count. Groups are like those of `sums`.
        """

    def functions(self) -> list[bytes]:
        """Names by number; the name of 0, for shared bytes, is empty."""

    def sums(
        self, entry_groups: bytes, function_groups: bytes, *, by_part: bool
    ) -> list[tuple[int, int, int, int, int, int, int]]:
        """Sums as (group of entries, of functions, part, rows, unpacked, installed, download).

        Groups are int32 for each entry, below 2**26, and for each function, below 2**30; rows of a
        negative group do not count. The part is -1 without `by_part`. Rows are unordered.
        """
