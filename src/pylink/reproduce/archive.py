"""Unpacks the archive of `--reproduce`, which is not trusted: another user may have written it.

Only files and directories are unpacked, below a new directory and within limits.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile

import zstandard

from pylink.diagnostics.errors import reason_of
from pylink.outputs.reproducer import DATA, FORMAT, MANIFEST, ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

# Limits of an archive: bytes of all files unpacked, number of files and directories, bytes of the
# manifest, bytes of memory that Zstandard may use to look back.
MAX_BYTES = 1 << 33
MAX_FILES = 1 << 18
MAX_MANIFEST = 1 << 26
MAX_WINDOW = 1 << 27


class BadArchiveError(Exception):
    """An archive that cannot be linked; the text is for the user."""


def unpack(file: str, directory: str) -> None:
    """Unpack files and directories below `directory`; BadArchiveError if anything is wrong."""
    try:
        with open(file, "rb") as stream:
            reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(stream)
            with tarfile.open(fileobj=reader, mode="r|") as archive:
                _unpack(archive, directory)
    except (OSError, ValueError, tarfile.TarError, zstandard.ZstdError, MemoryError) as error:
        raise BadArchiveError(reason_of(error) or "there is not enough memory") from error


def _unpack(archive: tarfile.TarFile, directory: str) -> None:
    """Write the files of an archive into a directory; `BadArchiveError` if one is not allowed."""
    remaining = MAX_BYTES
    for number, row in enumerate(archive):
        parts = row.name.split("/")
        if parts[0] not in (ROOT, DATA, MANIFEST) or {"", ".", ".."} & set(parts):
            raise BadArchiveError(f"it has a file '{row.name}', which --reproduce never writes")
        if row.type not in (tarfile.REGTYPE, tarfile.DIRTYPE) or row.issparse():
            raise BadArchiveError(f"'{row.name}' is neither a file nor a directory")
        remaining -= row.size
        if remaining < 0 or number >= MAX_FILES:
            raise BadArchiveError(f"it has more than {MAX_BYTES} bytes or {MAX_FILES} files")
        path = os.path.join(directory, row.name)
        if row.isdir():
            os.makedirs(path, 0o700, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        contents = archive.extractfile(row)
        assert contents is not None
        with open(path, "xb") as target:
            _copy(contents, target, row)


def _copy(contents: IO[bytes], target: IO[bytes], row: tarfile.TarInfo) -> None:
    """Write the contents of a file to `target`; BadArchiveError if they are shorter than stated."""
    shutil.copyfileobj(contents, target, 1 << 20)
    if target.tell() != row.size:
        raise BadArchiveError(f"it ends within '{row.name}'")


def read_manifest(directory: str) -> dict[str, Any]:
    """Return the manifest of an unpacked archive; BadArchiveError if it is missing or damaged."""
    file = os.path.join(directory, MANIFEST)
    try:
        if os.path.getsize(file) > MAX_MANIFEST:
            raise BadArchiveError(f"'{MANIFEST}' has more than {MAX_MANIFEST} bytes")
        with open(file, "rb") as stream:
            manifest = json.load(stream)
    except FileNotFoundError as error:
        raise BadArchiveError(f"it has no '{MANIFEST}'") from error
    except (OSError, ValueError, RecursionError) as error:
        raise BadArchiveError(f"'{MANIFEST}' cannot be read: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BadArchiveError(f"'{MANIFEST}' is not of format {FORMAT}, which this version knows")
    return manifest
