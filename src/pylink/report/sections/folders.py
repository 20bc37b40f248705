"""Where section and rule files come from: the search path, and the user's copy of stock files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from pylink import __version__
from pylink.files.atomic import write_whole
from pylink.report.errors import ReportError

STOCK = Path(__file__).parents[1] / "stock"

# Environment: where the user's files are, and whether stock files are copied there.
FOLDER = "PYLINK_SECTIONS"
NO_DEPLOYMENT = "PYLINK_DISABLE_SECTION_DEPLOYMENT"


@dataclass(slots=True)
class Findings:
    """What is wrong with the files of a search path: those that failed, and warnings."""

    errors: list[tuple[Path, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def replaces(self, what: str, file: Path, earlier: Path) -> None:
        """The last file with an identifier counts; without a warning if the names are equal."""
        if file.name != earlier.name:
            self.warnings.append(
                f"{what}: {file} replaces {earlier}, which has the same identifier"
            )

    def problems(self) -> list[str]:
        """All of them, in words."""
        return [*(f"{file}: {reason}" for file, reason in self.errors), *self.warnings]


class FolderError(ReportError):
    """A folder of the search path that is none."""


def user_folder() -> Path:
    """The folder of the user's own files: $PYLINK_SECTIONS or sections of the data directory.

    FileNotFoundError for a user without a home.
    """
    given = os.environ.get(FOLDER)
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        return Path(data) / "pylink" / "sections"
    try:
        return Path.home() / ".local" / "share" / "pylink" / "sections"
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None


def stock_folder() -> Path:
    """The stock files of this version: the copy in the user's folder, made when it is missing.

    A file that is there is kept, so that a user may change it; deleting it brings the stock file
    back. Other stock files have a folder of their own: rules import each other. Where nothing may
    be written, the files are used from the package.
    """
    if os.environ.get(NO_DEPLOYMENT):
        return STOCK
    try:
        stock = {file: file.read_bytes() for file in sorted(STOCK.iterdir()) if file.is_file()}
        contents = 0
        for file, data in stock.items():
            contents = crc32(b"%s %d %s" % (os.fsencode(file.name), len(data), data), contents)
        folder = user_folder() / f"{__version__}-{contents:08x}"
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in stock.items():
            if not (folder / file.name).exists():
                write_whole(str(folder / file.name), data)
    except OSError:
        return STOCK
    return folder


def search_path(folders: Iterable[str] = (), recursive: Iterable[str] = ()) -> list[Path]:
    """The folders to look in: those given, or the stock folder and the user's.

    A folder of `recursive` stands for itself and all folders below it. FolderError for a given one
    that does not exist.
    """
    path: list[Path] = []
    for name in folders:
        path.append(_existing(name))
    for name in recursive:
        root = _existing(name)
        path += sorted(Path(folder) for folder, _, _ in os.walk(root))
    if path:
        return path
    path = [stock_folder()]
    try:
        own = user_folder()
    except FileNotFoundError:
        return path
    if own.is_dir():
        path.append(own)
    return path


def _existing(name: str) -> Path:
    folder = Path(name)
    if not folder.is_dir():
        raise FolderError(f"Failed to add section search path {name}: it is not a directory")
    return folder


def files_in(path: Iterable[Path], suffix: str) -> list[Path]:
    """The files of that suffix, whatever its case, folder by folder and by name."""
    paths: list[Path] = []
    for folder in path:
        for file in sorted(folder.iterdir()):
            if file.suffix.lower() == suffix and file.is_file() and not file.name.startswith("."):
                paths.append(file)
    return paths
