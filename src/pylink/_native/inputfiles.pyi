"""Reads files into one arena: their sizes, bytes, and kinds."""

from pylink._native.recycling import RecycledPages

def measure(paths: list[bytes | None], largest: int, outputs: list[tuple[int, int]]) -> list[int]:
    """Return the size of each file in bytes, -1 for a file that Python must examine.

    Such a file has no path, is missing or not regular, is empty or has more than `largest` bytes,
    or is in `outputs`: device and inode of each file that the link will replace. Never raises
    `OSError`.
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
        second call does nothing, nor does one in a child process, which has no pages in the places
        of the files. Never raises `OSError`.
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
    each. `failed` is the number of the first input that could not be read, or -1, and `error` its
    errno, or 0 for a file that became shorter; then the arena is unusable. `times` gets a row for
    each input: its start by `time.perf_counter_ns`, wall time and processor time in nanoseconds,
    and the number of the thread that read it; each a u64. With `mapped`, cubins of 32 KiB and more
    are mapped if it is safe and faster, and the arena is read-only there; with `maps_hosts` objects
    of the host as well. A process that has linked before reads all files into `pages` instead. The
    arena ends with `tail` more bytes, which are not set (see `payloads.Tail`).
    `ValueError` for data or times of the wrong size; never `OSError`.
    """

def keep_memory() -> None:
    """Make the heap of this process one region of large pages that is never returned.

    For a process that only links; works with glibc on Linux only.
    """

def keep_blocks(*, owns_process: bool) -> None:
    """Keep freed blocks of up to 32 MB in this process, for later blocks of any of its threads.

    For a process that only runs a device-link step: successive links need slightly larger blocks,
    which the C library would request from the system each time. With `owns_process` it ends after
    the step, and recycled pages stay its own until then.
    """

def classify(arena: bytes, extents: bytes) -> bytes:
    """Return a byte of `pylink.facts.inputkinds` for each file, or no bytes if all are cubins.

    It is empty if all are cubins, or ELF files that only `elfread.parse` can check. `IndexError`
    for an extent outside the arena.
    """
