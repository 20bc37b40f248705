"""Files into one arena: their sizes, their bytes, and what kind of input each of them is."""

from collections.abc import Callable, Iterable

from pylink.startup.bundle import Later, Row

def measure(paths: list[bytes | None], largest: int, outputs: list[tuple[int, int]]) -> list[int]:
    """The size of each file in bytes, -1 where it takes a closer look.

    Those are what has no path, is not there or is not a regular file; what has no bytes or more
    than ``largest``; and what is one of ``outputs``, device and inode of each file that the link
    will replace. ``OSError`` never.
    """

class MappedFiles:
    """The files that lie in an arena as they are, mapped by ``read_files``: none at first.

    Nobody can write to them meanwhile: who opens one to write waits for the end, for as long as the
    system lets wait (``fs.lease-break-time``, 45 s). A context manager, which ends it with copies.
    """

    def end(self, keeps: bool) -> int:
        """Unmap the files; the arena has copies of them from now on or, unless it ``keeps``, zeros.

        Returns the first input that somebody wrote to although it was mapped, or -1. Does nothing a
        second time, nor in a child process, which has nothing in their places. ``OSError`` never.
        """

    def __enter__(self) -> MappedFiles: ...
    def __exit__(self, *_: object) -> None: ...

def read_files(
    paths: list[bytes | None],
    sizes: list[int],
    data: list[bytes | None],
    times: bytearray | None = None,
    mapped: MappedFiles | None = None,
    tail: int = 0,
) -> tuple[bytes, bytes, int, int]:
    """Read every input into one arena: (arena, extents, failed, error).

    ``paths[i]`` is a path, or None when ``data[i]`` already holds the bytes; ``sizes[i]`` is the
    size in bytes either way. Files begin at multiples of 16; ``extents`` has a row (offset u64,
    size u64) each. ``failed`` is the first input that could not be read, or -1, and ``error`` its
    errno, or 0 for a file that became shorter; the arena is of no use then. ``times`` takes a row
    for each input: its start as of ``time.perf_counter_ns``, wall time and processor time in
    nanoseconds, and 0 or, of the helping thread, 1; each a u64. With ``mapped``, cubins of 32 KiB
    and more are mapped where that pays and is safe, and the arena is read-only there. A process
    that has recycled pages reads all files to some instead, and keeps them when ``mapped`` ends.
    The arena ends with ``tail`` more bytes, which are not set: see ``Tail``; no pages are recycled
    for it then.
    ``ValueError`` for data or times of another size, ``OSError`` never.
    """

def use_codec(codec: int, path: bytes) -> bool:
    """Have the C library at ``path`` decompress a codec of ``pylink.inputs.payload`` from now on.

    False when it cannot, and ``gather`` leaves those to its caller.
    """

def gather(
    picks: bytes, arenas: list[bytes], produce: Callable[[int], bytes]
) -> tuple[bytes, bytes]:
    """An arena of files: (arena, extents), as those of ``read_files``.

    ``picks`` are rows of ``pylink.inputs.picks``, whose places are in ``arenas``; they are copied
    and decompressed by several threads. ``produce(i)`` gives what is in no arena, and what could
    not be decompressed, one by one, and each is let go before the next is asked for. What comes in
    another size than its row says is empty in ``extents``. Exceptions of ``produce`` pass through;
    ``ValueError`` for a place outside of its arena, ``MemoryError`` when there is none.
    """

class Tail:
    """The last ``size`` bytes of an arena, which nobody has read yet.

    ``gather_in_place`` hands them out, each of them once; also to several threads.
    """

    def __init__(self, arena: bytes, size: int) -> None: ...

def gather_in_place(picks: bytes, arenas: list[bytes], tail: Tail) -> tuple[bytes, bytes] | None:
    """As ``gather``, but in the arena of ``tail``: what is stored there stays where it is.

    The rest goes into the tail. None where that cannot be: the tail is too short, a file must be
    produced, or those in place do not follow each other at multiples of 8.
    """

def keep_memory() -> None:
    """Make the heap of this process one region of large pages that nothing is returned from.

    For a process that is all the link's; has an effect with glibc on Linux only.
    """

def keep_blocks() -> None:
    """Keep blocks of up to 32 MB in this process when they are freed, for the next of that size.

    For a process that is all the step's: links one after the other need blocks that are each a bit
    larger than the one before, which the C library would get from the system each time.
    """

def are_unchanged(files: Iterable[Row | Later], folder: int) -> bool:
    """Whether the file of each row has the size in bytes and the time in ns that the row says.

    Paths are relative to the directory of the descriptor `folder`. False where one is not there.
    Rows without a path are those of no file.
    """

def classify(arena: bytes, extents: bytes) -> bytes:
    """What each file of the arena is: a byte of ``pylink.inputs.kinds`` each.

    Nothing when all are cubins, or ELF files that only ``elfread.parse`` can judge. ``IndexError``
    for an extent outside the arena.
    """
