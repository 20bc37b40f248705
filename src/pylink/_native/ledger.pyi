"""Counts the bytes of device code: payloads by part and function.

Parts are numbers of `pylink.size.model.PARTS`. Calls for one ledger may come from several
threads: long work runs without the GIL.
"""

from pylink.size.payload import Payload

class Measured:
    """The results for a counted payload.

    `elf_type` is e_type of a cubin. `unit` are bytes that identify the source file, or empty. The
    fingerprints `exact` and `like` of a linked cubin cover everything except for notes and the SM
    number; `like` also ignores EIATTR_SW2861232_WAR, which only some chips need. Both are empty for
    other payloads. `same_as` is the number of the entry with equal contents that is compressed
    instead of this one, or -1. `frame_size` is the size of the Zstandard frame in bytes, 0 if none
    was made. `frame` has its bytes; it is None without a frame, and without `keep_frames`.
    """

    elf_type: int
    unit: bytes
    exact: bytes
    like: bytes
    same_as: int
    frame_size: int
    frame: bytes | None

class Sum:
    """The bytes of a group of entries and a group of functions; `part` is -1 for all parts.

    They are bytes of decompressed payloads (`unpacked`), and their shares of the entries' bytes in
    the file (`installed`) and in the archive (`download`). `rows` is the number of added rows.
    """

    entry_group: int
    function_group: int
    part: int
    rows: int
    unpacked: int
    installed: int
    download: int

class Repeat:
    """A function, or data (function 0), of an entry: `size` bytes that an earlier entry has too."""

    entry_group: int
    function: int
    entry: int
    size: int

def open_library(codec: int, path: bytes) -> bool:
    """Use the library at `path` for a codec from now on; False if it cannot decompress.

    `codec` is a Codec of `pylink.facts.picknumbers`. Without a library for its codec a payload
    cannot be decompressed.
    """

def return_memory() -> None:
    """Return memory of large payloads to the system as soon as they are counted.

    This is a setting of the whole process. Otherwise the C library keeps memory for later use: 40
    MB when a wheel of 250 MB is measured.
    """

class Ledger:
    """The measured bytes, a row for each part of each function of each entry."""

    def measure(
        self, payloads: list[Payload], file: int = -1, level: int = 0, *, keep_frames: bool = False
    ) -> list[Measured | None]:
        """Decompress and count payloads, and compress again those with `is_recompressed`.

        A payload without bytes is read from `file`, a descriptor, at its offset. Its `packed` bytes
        in the file become `full` bytes. The rows of a payload share the installed and the
        downloaded bytes in proportion to their sizes. Frames are those of the Zstandard `level`;
        `keep_frames` returns them, too.

        None for a payload that cannot be decompressed, and for a cubin with damaged headers; these
        are not counted. EOFError if the file is too short, OSError if it cannot be read.
        """

    def contents_compressed(self) -> int:
        """Return the number of different payloads that were to be compressed again."""

    def repeats(self, entry_groups: bytes) -> list[Repeat]:
        """List functions and data of linked cubins that an earlier entry of the group also has.

        Such functions have equal names, code, constants, relocations by symbol and attributes; the
        bytes are those of the code. Data of fewer than 256 bytes does not count. `entry_groups` is
        like that of `sums`.
        """

    def functions(self) -> list[bytes]:
        """Return the names of functions by number; that of 0, bytes of no function, is empty."""

    def sums(self, entry_groups: bytes, function_groups: bytes, *, by_part: bool) -> list[Sum]:
        """Return the sums of rows by group, in any order.

        Groups are int32 for each entry, below 2**26, and for each function, below 2**30; rows of a
        negative group do not count.
        """
