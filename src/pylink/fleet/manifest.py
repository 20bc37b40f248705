"""Reads a description of targets: which target has which files.

The description is a file with rules of make, as compilers and linkers write them, a ninja build, or
JSON of the form {"target": ["file or pattern", ...]}. A file may belong to several targets.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from dataclasses import dataclass

from pylink.diagnostics.errors import reason_of
from pylink.files.reading import read_incoming
from pylink.fleet.columns import MEMBERS, show_bytes
from pylink.fleet.parquet import make_integer_column, make_text_column, make_word_column, pack_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pylink.fleet.parquet import Table

# Bytes of the largest description of targets that is read.
MAX_DESCRIPTION = 1 << 30


class BadDescription(ValueError):
    """A description of targets cannot be read; the text names the file."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a target: `path` below `root`; `place` is its number among the target's inputs."""

    target: str
    root: bytes
    path: bytes
    place: int


def pack_members(members: Iterable[Member]) -> bytes:
    """Return the table of targets as a Parquet file."""
    rows = list(members)
    table: Table = {
        "target": make_word_column([member.target for member in rows]),
        "root": make_text_column([member.root for member in rows]),
        "path": make_text_column([member.path for member in rows]),
        "place": make_integer_column("int32", [member.place for member in rows]),
    }
    return pack_table(MEMBERS, table)


def read_members(name: str, files: Iterable[tuple[bytes, bytes]]) -> Iterator[Member]:
    """Yield the members of targets that the file `name` describes, among existing files.

    `files` are pairs (root, path). Relative names start at the directory of the description. Raises
    BadDescription.
    """
    try:
        data = read_incoming(name, limit=MAX_DESCRIPTION, pipes=False)
    except OSError as error:
        raise BadDescription(f"{name}: {reason_of(error)}") from error
    directory = os.fsencode(os.path.dirname(os.path.abspath(name)))
    place_of = {os.path.join(root, path): (root, path) for root, path in files}
    for target, inputs in _parse_description(name, data).items():
        place = 0
        seen = set()
        for pattern in inputs:
            full = os.path.normpath(os.path.join(directory, pattern))
            matches = [full]
            if full not in place_of and any(sign in pattern for sign in (b"*", b"?", b"[")):
                fits = re.compile(fnmatch.translate(os.fsdecode(full)).encode("utf-8", "replace"))
                matches = sorted(path for path in place_of if fits.match(path))
            for match in matches:
                if match in place_of and match not in seen:
                    seen.add(match)
                    yield Member(show_bytes(target), *place_of[match], place)
                    place += 1


def _parse_description(name: str, data: bytes) -> Mapping[bytes, list[bytes]]:
    """Return the files or patterns of each target, in the format that the file's name says."""
    if name.endswith(".json"):
        return _from_json(name, data)
    if name.endswith(".ninja"):
        return _from_ninja(data)
    return _from_rules(data)


def _from_json(name: str, data: bytes) -> dict[bytes, list[bytes]]:
    """Read the files of each target from JSON; BadDescription if it has another form."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadDescription(f"{name}: not JSON: {error}") from error
    if not isinstance(value, dict) or not all(
        isinstance(files, list) and all(isinstance(file, str) for file in files)
        for files in value.values()
    ):
        raise BadDescription(f'{name}: it must have the form {{"target": ["file", ...]}}')
    return {
        target.encode("utf-8", "surrogateescape"): [
            file.encode("utf-8", "surrogateescape") for file in files
        ]
        for target, files in value.items()
    }


# One name in a rule of make or ninja, which may have blanks after a backslash or a dollar sign.
_MAKE_WORD = re.compile(rb"(?:\\.|[^\s\\])+")
_NINJA_WORD = re.compile(rb"(?:\$.|[^\s$])+")


def _from_rules(data: bytes) -> dict[bytes, list[bytes]]:
    """Read rules `targets: inputs`; a backslash at the end of a line continues it."""
    files_of: dict[bytes, list[bytes]] = {}
    for line in data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").splitlines():
        names, colon, inputs = line.partition(b": ")
        if colon and not line.startswith((b"#", b"\t")):
            files = [_unquote(word) for word in _MAKE_WORD.findall(inputs)]
            for target in _MAKE_WORD.findall(names):
                files_of.setdefault(_unquote(target), []).extend(files)
    return files_of


def _unquote(word: bytes) -> bytes:
    """Return a name in a rule of make without backslashes, and with `$` for `$$`."""
    return re.sub(rb"\\(.)", rb"\1", word).replace(b"$$", b"$")


def _from_ninja(data: bytes) -> dict[bytes, list[bytes]]:
    """Read `build outputs: rule inputs | implicit || order-only`.

    The first output is the target; `inputs` and `implicit` are its files. Lines with the rule phony
    are skipped.
    """
    files_of: dict[bytes, list[bytes]] = {}
    for line in re.sub(rb"\$\r?\n\s*", b" ", data).splitlines():
        if not line.startswith(b"build "):
            continue
        colon = re.search(rb"(?<!\$):", line)
        if colon is None:
            continue
        outputs = _NINJA_WORD.findall(line[len(b"build ") : colon.start()])
        rule, *inputs = _NINJA_WORD.findall(line[colon.end() :]) or [b"phony"]
        if rule == b"phony" or not outputs:
            continue
        files = []
        for word in inputs:
            if word == b"||":
                break
            if word != b"|":
                files.append(re.sub(rb"\$(.)", rb"\1", word))
        files_of.setdefault(re.sub(rb"\$(.)", rb"\1", outputs[0]), []).extend(files)
    return files_of
