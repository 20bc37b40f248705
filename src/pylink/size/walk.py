"""Measures files and directories; all callers of this package start here."""

from __future__ import annotations

import os

from pylink.size.entries import Counter
from pylink.size.model import Sizes
from pylink.size.takeapart import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylink.size.experiments import Experiments


def measure(
    paths: Iterable[str],
    advance: Callable[[str], None] = lambda _: None,
    *,
    recompress: bool = False,
    experiments: Experiments | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Sizes:
    """Measure each of `paths`: a file, or all files below a directory.

    `advance` is called with the name of each file. With `recompress`, stored and LZ4 cubins in
    containers are compressed as zstd, so that `reductions` can report the savings. `experiments`
    are further, slow measurements of each entry. `meanwhile` is called when all files are read,
    while threads still count.

    A file that cannot be opened is in `Sizes.unreadable`; OSError if reading it fails later.
    """
    sizes = Sizes()
    with Counter(sizes, recompress=recompress, experiments=experiments) as counter:
        reader = Reader(sizes, counter)
        for path in paths:
            for file in _files(path):
                advance(file)
                reader.read(file)
        counter.submit()
        if meanwhile is not None:
            meanwhile()
        counter.finish()
        reader.finish()
    return sizes


def measure_bytes(name: str, data: bytes) -> Sizes:
    """Measure one file in memory that is not a zip file; `name` is its name in results."""
    sizes = Sizes()
    with Counter(sizes) as counter:
        reader = Reader(sizes, counter)
        reader.read_bytes(name, data)
        counter.finish()
        reader.finish()
    return sizes


def _files(path: str) -> Iterator[str]:
    """Yield `path` if it is not a directory, else all regular files below it, without links."""
    if not os.path.isdir(path):
        yield path
        return
    for directory, directories, files in os.walk(path):
        directories.sort()
        for file in sorted(files):
            file_path = os.path.join(directory, file)
            if os.path.isfile(file_path) and not os.path.islink(file_path):
                yield file_path
