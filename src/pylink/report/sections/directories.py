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

# Stock files of the package.
STOCK_DIRECTORY = Path(__file__).parents[1] / "stock"

# Environment variables: the first names the user's directory of sections and rules; if the second
# is set, stock files are not copied into that directory.
DIRECTORY_VARIABLE = "PYLINK_SECTIONS"
NO_DEPLOYMENT = "PYLINK_DISABLE_SECTION_DEPLOYMENT"


@dataclass(slots=True)
class Findings:
    """Problems in the files of a search path: errors, each with its file, and warnings."""

    errors: list[tuple[Path, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note_replacement(self, subject: str, file: Path, earlier: Path) -> None:
        """Add a warning that a file replaces an earlier one, unless their names are equal.

        `subject` is the section or rule that both files define.
        """
        if file.name != earlier.name:
            self.warnings.append(
                f"{subject}: {file} replaces {earlier}, which has the same identifier"
            )

    def problems(self) -> list[str]:
        """Return all problems as text."""
        return [*(f"{file}: {reason}" for file, reason in self.errors), *self.warnings]


class DirectoryError(ReportError):
    """A directory of the search path that does not exist."""


def user_directory() -> Path:
    """Return the directory of the user's own files.

    It is $PYLINK_SECTIONS, or `pylink/sections` of the data directory. FileNotFoundError for a user
    without a home.
    """
    directory = os.environ.get(DIRECTORY_VARIABLE)
    if directory:
        return Path(directory)
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        return Path(data) / "pylink" / "sections"
    try:
        return Path.home() / ".local" / "share" / "pylink" / "sections"
    except RuntimeError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None


def _stock_directory() -> Path:
    """Return this version's directory of stock files, which is below the user's directory.

    Stock files that it lacks are copied to it, so deleting a file restores it at the next call. An
    existing file is kept, so that a user may change it. Other versions have directories of their
    own, since stock rules import a module of the same version. If the copy cannot be written,
    or `NO_DEPLOYMENT` is set, return the directory in the package.
    """
    if os.environ.get(NO_DEPLOYMENT):
        return STOCK_DIRECTORY
    try:
        stock = {
            file: file.read_bytes() for file in sorted(STOCK_DIRECTORY.iterdir()) if file.is_file()
        }
        checksum = 0
        for file, data in stock.items():
            checksum = crc32(b"%s %d %s" % (os.fsencode(file.name), len(data), data), checksum)
        directory = user_directory() / f"{__version__}-{checksum:08x}"
        directory.mkdir(parents=True, exist_ok=True)
        for file, data in stock.items():
            if not (directory / file.name).exists():
                write_whole(str(directory / file.name), data)
    except OSError:
        return STOCK_DIRECTORY
    return directory


def search_path(directories: Iterable[str] = (), recursive: Iterable[str] = ()) -> list[Path]:
    """Return the directories to search (default: the stock directory, then the user's).

    A directory of `recursive` includes all directories below it. DirectoryError if a given
    directory does not exist.
    """
    path: list[Path] = []
    for name in directories:
        path.append(_check_directory(name))
    for name in recursive:
        root = _check_directory(name)
        path += sorted(Path(directory) for directory, _, _ in os.walk(root))
    if path:
        return path
    path = [_stock_directory()]
    try:
        own_directory = user_directory()
    except FileNotFoundError:
        return path
    if own_directory.is_dir():
        path.append(own_directory)
    return path


def _check_directory(name: str) -> Path:
    """Return a directory by its name; DirectoryError if it does not exist."""
    directory = Path(name)
    if not directory.is_dir():
        raise DirectoryError(f"Failed to add section search path {name}: it is not a directory")
    return directory


def files_in(path: Iterable[Path], suffix: str) -> list[Path]:
    """Return the files with a suffix (any case), by directory and name; hidden ones are omitted."""
    paths: list[Path] = []
    for directory in path:
        for file in sorted(directory.iterdir()):
            if file.suffix.lower() == suffix and file.is_file() and not file.name.startswith("."):
                paths.append(file)
    return paths
