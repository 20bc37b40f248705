"""Feature programs: small sources for one feature each, from the `*.rows` files of this folder.

A row begins with `## name`. Lines of properties may follow, then its files, each behind a line
`--- cu` or `--- ptx` with the compiler's flags for that file (`--- host` is CUDA C++ as a host
object, `--- whole` as a whole program):

    ## weak-variable
    flags: -lineinfo
    open: relink @ 100 121 @ 13.5 @ why these links differ
    --- ptx
    .weak .global .u32 w = 1;
    --- cu -O0
    __global__ void k(int *p) { *p = 1; }

`flags` are for all files, `link` are options of every link, `chips` and `releases` those that have
the feature, `skip` kinds of link that make no sense. PTX needs no head: it gets that of the chip.

`open` names the links that are known to differ: kinds, chips and releases, each a list or `*`, and
the reason. It is checked in both directions: a link that became equal fails until the line is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
CHIPS = ("80", "90a", "100", "121")
RELEASES = ("13.0", "13.5")
HEAD = ".version {version}\n.target sm_{chip}\n.address_size 64\n"
PTX_VERSION = {"13.0": "9.0", "13.5": "9.3"}
KINDS = ("cu", "ptx", "host", "whole")
WORDS = ("chips", "flags", "link", "releases", "skip")


@dataclass(frozen=True)
class Source:
    """One file of a row; `kind` is one of KINDS."""

    kind: str
    text: str
    flags: tuple[str, ...]

    def text_for(self, chip: str, version: str) -> str:
        """The source; PTX gets the head that it does not bring."""
        if self.kind != "ptx" or self.text.startswith(".version"):
            return self.text
        return HEAD.format(version=version, chip=chip) + self.text


@dataclass(frozen=True)
class Open:
    """Links of a row that differ from nvlink's, and why they may; an empty set stands for all."""

    kinds: frozenset[str]
    chips: frozenset[str]
    releases: frozenset[str]
    reason: str

    def covers(self, kind: str, chip: str, release: str) -> bool:
        return all(
            not known or value in known
            for value, known in ((kind, self.kinds), (chip, self.chips), (release, self.releases))
        )


@dataclass
class Row:
    """One feature."""

    name: str
    place: str
    sources: list[Source] = field(default_factory=list)
    chips: tuple[str, ...] = CHIPS
    releases: tuple[str, ...] = RELEASES
    link: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    open: list[Open] = field(default_factory=list)

    def waits(self, kind: str, chip: str, release: str) -> str:
        """Why this link is known to differ; empty when it is not."""
        return next((row.reason for row in self.open if row.covers(kind, chip, release)), "")


def _open(value: str) -> Open:
    kinds, chips, releases, reason = (part.strip() for part in value.split("@", 3))
    return Open(_set(kinds), _set(chips), _set(releases), reason)


def _set(words: str) -> frozenset[str]:
    return frozenset() if words == "*" else frozenset(words.split())


def _row(name: str, place: str, text: str) -> Row:
    head, *files = re.split(r"^--- ", text, flags=re.MULTILINE)
    row = Row(name, place)
    for line in head.strip().splitlines():
        word, _, value = line.partition(":")
        if word == "open":
            row.open.append(_open(value))
        elif word in WORDS:
            setattr(row, word, tuple(value.split()))
        else:
            raise ValueError(f"{place}: {name}: unknown property {word!r}")
    for file in files:
        first, _, body = file.partition("\n")
        kind, *flags = first.split()
        if kind not in KINDS:
            raise ValueError(f"{place}: {name}: a file is one of {KINDS}, not {kind!r}")
        row.sources.append(Source(kind, body, (*row.flags, *flags)))
    if not row.sources:
        raise ValueError(f"{place}: {name}: no files")
    return row


def rows() -> Iterator[Row]:
    """All rows of all files."""
    for path in sorted(FOLDER.glob("*.rows")):
        _, *parts = re.split(r"^## ", path.read_text(), flags=re.MULTILINE)
        for part in parts:
            name, _, text = part.partition("\n")
            yield _row(name.strip(), path.name, text)
