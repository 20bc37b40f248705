"""The search path of section and rule files, and the user's copy of stock files."""

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

# Environment variables: the user's folder, and whether stock files are not copied there.
FOLDER = "PYLINK_SECTIONS"
NO_DEPLOYMENT = "PYLINK_DISABLE_SECTION_DEPLOYMENT"


@dataclass(slots=True)
class Findings:
    """Problems of the files of a search path: errors and warnings."""

    errors: list[tuple[Path, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note_replacement(self, subject: str, file: Path, earlier: Path) -> None:
        """Warn that a file replaces an earlier one, unless their names are equal."""
        if file.name != earlier.name:
            self.warnings.append(
                f"{subject}: {file} replaces {earlier}, which has the same identifier"
            )

    def problems(self) -> list[str]:
        """All problems as text."""
        return [*(f"{file}: {reason}" for file, reason in self.errors), *self.warnings]


class FolderError(ReportError):
    """A folder of the search path that does not exist."""


def user_folder() -> Path:
    """The folder of the user's own files: $PYLINK_SECTIONS or sections of the data directory.

    FileNotFoundError for a user without a home.
    """
    folder = os.environ.get(FOLDER)
    if folder:
        return Path(folder)
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        return Path(data) / "pylink" / "sections"
    try:
        return Path.home() / ".local" / "share" / "pylink" / "sections"
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None


def stock_folder() -> Path:
    """The folder of this version's stock files in the user's folder; missing files are copied.

    An existing file is kept, so that a user may change it; deleting it restores the stock file.
    Other versions have folders of their own, since rules import each other. If the copy cannot be
    written, the files of the package are used.
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
    """The folders to search: `folders` and `recursive`, or by default the stock and user folders.

    A folder of `recursive` includes all folders below it. FolderError if a given folder does not
    exist.
    """
    path: list[Path] = []
    for name in folders:
        path.append(_check_folder(name))
    for name in recursive:
        root = _check_folder(name)
        path += sorted(Path(folder) for folder, _, _ in os.walk(root))
    if path:
        return path
    path = [stock_folder()]
    try:
        user = user_folder()
    except FileNotFoundError:
        return path
    if user.is_dir():
        path.append(user)
    return path


def _check_folder(name: str) -> Path:
    folder = Path(name)
    if not folder.is_dir():
        raise FolderError(f"Failed to add section search path {name}: it is not a directory")
    return folder


def files_in(path: Iterable[Path], suffix: str) -> list[Path]:
    """The files with that suffix in any case, folder by folder, sorted by name."""
    paths: list[Path] = []
    for folder in path:
        for file in sorted(folder.iterdir()):
            if file.suffix.lower() == suffix and file.is_file() and not file.name.startswith("."):
                paths.append(file)
    return paths
