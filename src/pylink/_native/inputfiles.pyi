"""Finds the sizes of files, reads their bytes into one arena, and finds their kinds."""

from pylink._native.recycling import RecycledPages

def measure(paths: list[bytes | None], largest: int, outputs: list[tuple[int, int]]) -> list[int]:
    """Return the size of each file in bytes, -1 for a file that Python must examine.

    Such a file has no path or one with a zero byte, is missing or not regular, is empty or has more
    than `largest` bytes, or is in `outputs`: device and inode of each file that the link will
    replace. Never raises `OSError`.
    """

class MappedFiles:
    """The files that `read_files` mapped into an arena; empty at first.

    Leases keep other processes from writing to them: opening one for writing waits for `end`, up to
    a limit of the system (`fs.lease-break-time`, 45 s). As a context manager it calls
    `end(keeps=True)`.
    """

    def end(self, *, keeps: bool) -> int:
        """Unmap the files; the arena then has copies of them or, without `keeps`, zeros.

        Returns the number of the first input that was written to while it was mapped, or -1. A
        second call does nothing and returns -1. So does a call in a child process, which inherits
        no pages of the mapped files. Never raises `OSError`.
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
    *,
    pages: RecycledPages | None = None,
    maps_hosts: bool = False,
) -> tuple[bytes, bytes, int, int]:
    """Read every input into one arena: (arena, extents, failed, error).

    `paths[i]` is a path, or None when `data[i]` already holds the bytes; `sizes[i]` is the size in
    bytes either way. Files begin at multiples of 16; `extents` has a row (offset u64, size u64)
    for each. If an input could not be read, the arena is unusable: `failed` is the number of the
    first such input, and `error` its errno, or 0 if the file became shorter. Otherwise they are -1
    and 0.

    `times` gets a row for each input: its start by `time.perf_counter_ns`, wall time and processor
    time in nanoseconds, and the number of the thread that read it; each a u64. With `mapped`,
    cubins of 32 KiB and more are mapped if it is safe and faster, and the arena is read-only there;
    with `maps_hosts` objects of the host as well. A process that has linked before reads all files
    into `pages` instead, if these are given and can hold an arena of that size. The arena ends with
    `tail` more bytes, which are not set (see `payloads.Tail`). `ValueError` for lists of different
    lengths, and for data or times of the wrong size; never `OSError`.
    """

def keep_memory() -> None:
    """Make the heap of this process one region of large pages that is never returned.

    For a process that only links; works with glibc on Linux only.
    """

def keep_blocks(*, owns_process: bool) -> None:
    """Keep freed blocks of up to 32 MB in this process, for later blocks of any of its threads.

    For a process that only runs a device-link step: successive links need slightly larger blocks,
    which the C library would request from the system each time. With `owns_process` the process
    ends after the step, and recycled pages stay its own until then.
    """

def classify(arena: bytes, extents: bytes) -> bytes:
    """Return a byte of `pylink.facts.inputkinds` for each file, or no bytes if all are cubins.

    ELF files of another class or byte order, or shorter than an ELF header, count as cubins:
    `elfread.parse` says what is wrong with them. `IndexError` for an extent outside the arena.
    """
