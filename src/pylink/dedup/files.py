"""Analyzes folding of cubins in files, and computes the bytes that it saves in a link."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pylink.dedup.analysis import Analysis, analyze
from pylink.dedup.saving import saved_by_cubins
from pylink.facts.elf import EM_CUDA
from pylink.files.reading import read_incoming
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inspect.containers import UnreadableFile, is_known, parts
from pylink.inspect.image import Image
from pylink.mercury.cubin import MalformedCubin
from pylink.mercury.objects import MercuryObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def study(
    files: Iterable[str | os.PathLike[str]],
    *,
    arch: str | None = None,
    prefilter: str = "xxh3",
    identity: str = "symbols",
    progress: Callable[[int, int], object] | None = None,
) -> Analysis:
    """Analyze files like `pylink dedup`: which cubins fold, and what keeps the others from it.

    A file is a cubin, a file that contains cubins, or a directory of cubins. With `arch` only
    cubins for this architecture count. `prefilter` and `identity` are the options of the command.
    `progress` is called with the number of compared cubins and the number of all.

    Raises OSError for a file that cannot be read, UnreadableFile if there is no cubin,
    MalformedCubin for a damaged cubin, ValueError without files.
    """
    if isinstance(files, (str, os.PathLike)):
        raise TypeError("files is a list, also of one file")
    names = [os.fspath(file) for file in files]
    if not names:
        raise ValueError("files is empty; name a cubin, an archive or a directory")
    cubins = [cubin for path in list_files(names) for cubin in read_cubins(path)]
    if arch is not None:
        digits = re.sub(r"\D", "", arch)
        cubins = [(name, data) for name, data in cubins if str(_sm_of(name, data)) == digits]
    if not cubins:
        raise UnreadableFile(_without_cubins(names[0], arch))
    objects = [MercuryObject.from_cubin(data, name) for name, data in cubins]

    def report_progress(done: int) -> None:
        if progress is not None:
            progress(done, len(objects))

    analysis = analyze(objects, prefilter=prefilter, identity=identity, progress=report_progress)
    folds = any(candidate.reference is not None for candidate in analysis.candidates)
    analysis.saved_bytes = saved_by_cubins(cubins, _newest_arch(cubins)) if folds else 0
    return analysis


def _without_cubins(name: str, arch: str | None) -> str:
    """Return the message for files without cubins, of which `name` is the first."""
    target = f" for {arch}" if arch is not None else ""
    if Path(name).is_dir():
        return (
            f"{name}: there is no cubin file{target} in it; in directories only cubins are read, "
            "so name objects, archives and libraries"
        )
    return f"{name}: there is no cubin{target} in it"


def list_files(names: Sequence[str]) -> Iterator[Path]:
    """Yield the named files, and for a directory the cubins in it, sorted by path."""
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if _is_cubin(file))
        else:
            yield path


def read_cubins(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of each cubin in a file of any kind that `pylink inspect` opens."""
    for part in parts(str(path), bytes(read_incoming(path, is_wanted=is_known))):
        if part.kind == "cubin":
            yield f"{part.name} (sm_{part.arch})" if part.arch else part.name, part.data


def _newest_arch(cubins: Sequence[tuple[str, bytes]]) -> str:
    """Return the newest architecture of the cubins, such as `sm_100`."""
    return f"sm_{max(_sm_of(name, data) for name, data in cubins)}"


def _sm_of(name: str, data: bytes) -> int:
    """Return the SM number of a cubin; MalformedCubin, with the cubin's name, if it is damaged."""
    try:
        return Image(data).sm
    except ValueError as error:
        raise MalformedCubin(f"{name}: {error}") from None


def _is_cubin(path: Path) -> bool:
    """Return whether this is a file that begins like a cubin."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(20)
    return start[:4] == ELF_MAGIC and int.from_bytes(start[18:20], "little") == EM_CUDA
