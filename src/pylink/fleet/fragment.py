"""One fragment of an index: some files, the device code in them, and the sections of that."""

from __future__ import annotations

import itertools
from array import array
from typing import TYPE_CHECKING, NamedTuple

from pylink._native.columnpages import join_words
from pylink._native.cubinfiles import read_cubins
from pylink.facts.elf import ET_EXEC
from pylink.fleet.columns import (
    CUBIN,
    GONE,
    MOST_ROWS,
    OTHER,
    SECTIONS,
    TABLES,
    first_number,
    show_bytes,
)
from pylink.fleet.digests import hasher, list_hashed
from pylink.fleet.parquet import Numbers, Texts, constant, integers, numbered, texts, words, written
from pylink.fleet.parts import SNIFFED
from pylink.fleet.state import Rows
from pylink.fleet.targets import folder_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink._native.sectionindex import Columns
    from pylink.fleet.contents import Batch, FileResult, Source
    from pylink.fleet.parquet import Table
    from pylink.fleet.parts import Part
    from pylink.fleet.walk import Files

# What became of a file that was read natively: its kind, and "" for one to be looked at closely.
FATES = (CUBIN, OTHER, "")

# What is wrong with an object, by the native numbers.
FAULTS = {
    1: "it has no ELF header of a cubin",
    2: "its section headers do not lie in the file",
    3: "it has no section with the names of sections",
    4: "section {}: its name does not lie in the section with names",
    5: "section {}: its bytes do not lie in the file",
    6: "sections up to number {} have more than four times the bytes of the file",
    7: "names of sections up to number {} have more bytes than the file",
}


# Bytes of a native row of an object, and where its fields are among its 32 and 64-bit numbers.
OBJECT_SIZE = 32
FAULT, SECTION, SM, TYPE = range(4)
SIZE, COUNT = 2, 3


# Where the columns of names are among those of sections.
FAMILY, SUFFIX = (list(SECTIONS).index(name) for name in ("family", "suffix"))


class Fragment(NamedTuple):
    """What became of a part: Parquet files by the names of their tables, and what the state needs.

    `size` are bytes of files that were read.
    """

    tables: dict[str, bytes]
    rows: Rows
    size: int


def make_fragment(part: Part) -> Fragment:
    """Equal parts give identical bytes on every machine."""
    first = first_number(part.run, part.number)
    rows = part.files.rows
    fragment = FragmentRows(first)
    fates = bytes([FATES.index("")]) * rows
    if hasher():
        fragment.check(rows)
        fates, native = read_cubins(part.files, SNIFFED, first, hasher())
        fragment.take([row for row, fate in enumerate(fates) if not fate], None, native)
    results: dict[int, FileResult] = {}
    closely = [row for row, fate in enumerate(fates) if not FATES[fate]]
    for batch in _batches(closely, part.files, results):
        fragment.check(len(batch.cubins) + len(batch.others))
        native = list_hashed(batch.arena, batch.extents, first + fragment.count)
        fragment.take([source.file for source in batch.cubins], batch.cubins, native)
        fragment.take_others(batch.others)
    stamps = array("q", part.files.stamps)
    for row, result in results.items():
        stamps[4 * row : 4 * row + 4] = array("q", result.stamp)
    files = part.files._replace(stamps=stamps.tobytes()).followed_by(_forgotten(part.gone))
    tables = {
        "files": _files(files, fates, results, first),
        "objects": fragment.objects(),
        "sections": fragment.sections(),
    }
    written_tables = {name: written(TABLES[name], table) for name, table in tables.items()}
    gone = bytes(rows) + b"\1" * part.gone.rows
    return Fragment(written_tables, Rows(part.name, files, gone), sum(part.files.sizes))


def _batches(rows: Sequence[int], files: Files, results: dict[int, FileResult]) -> Iterable[Batch]:
    """What is in files that are to be looked at closely."""
    if not rows:
        return ()
    from pylink.fleet.contents import read_contents

    return read_contents(rows, files, results)


def _forgotten(files: Files) -> Files:
    """The same files with their sizes alone; times and numbers are 0."""
    stamps = array("q", bytes(len(files.stamps)))
    stamps[::4] = files.sizes
    return files._replace(stamps=stamps.tobytes())


def _files(files: Files, fates: bytes, results: dict[int, FileResult], first: int) -> Table:
    count = files.rows
    kinds: list[str | None] = [*map(FATES.__getitem__, fates), *[GONE] * (count - len(fates))]
    notes: dict[int, str] = {}
    for row, result in results.items():
        kinds[row] = result.kind
        if result.note is not None:
            notes[row] = result.note
    targets, numbers = folder_targets(files.ends, files.text)
    paths = Texts(files.ends, files.text)
    shown = (
        paths
        if files.text.isascii()
        else texts([show_bytes(text).encode() for text in _each(paths)])
    )
    stamps = array("q", files.stamps)
    return {
        "file": integers("int64", range(first, first + count)),
        "root": numbered(files.names, array("i", files.roots)),
        "path": paths,
        "name": shown,
        "target": numbered([target.encode() for target in targets], array("i", numbers)),
        **{
            name: Numbers(stamps[place::4].tobytes())
            for place, name in enumerate(("size", "mtime", "ctime", "inode"))
        },
        "kind": words(kinds),
        "note": words([*map(notes.get, range(count))]) if notes else constant(None, count),
    }


def _each(column: Texts) -> list[bytes]:
    ends = array("q", column.ends)
    return [column.text[start:end] for start, end in itertools.pairwise(ends)]


class FragmentRows:
    """Objects and sections, batch by batch."""

    def __init__(self, first: int) -> None:
        self.count = 0
        self._first = first
        self._files: list[int] = []
        self._sources: dict[int, Source] = {}  # of objects that are not a file of their own
        self._natives: list[bytes] = []
        self._sections: list[Columns] = []

    def check(self, more: int) -> None:
        if self.count + more > MOST_ROWS:
            raise OverflowError(f"one fragment holds at most {MOST_ROWS} objects")

    def take(self, rows: Sequence[int], sources: Sequence[Source] | None, native: Columns) -> None:
        """Cubins that are files of these rows, or are in them."""
        self._natives.append(native[0])
        self._sections.append(native)
        self._add(rows, sources)

    def take_others(self, sources: Sequence[Source]) -> None:
        """What is compiled only later: no sections are known of it."""
        for source in sources:
            row = array("Q", bytes(OBJECT_SIZE))
            row[SIZE] = source.size
            row[SM // 2] |= source.arch << 32 * (SM % 2)
            self._natives.append(row.tobytes())
        self._add([source.file for source in sources], sources)

    def _add(self, rows: Sequence[int], sources: Sequence[Source] | None) -> None:
        if sources is not None:
            self._sources.update(enumerate(sources, self.count))
        self._files += rows
        self.count += len(rows)

    def objects(self) -> Table:
        native = b"".join(self._natives)
        small, large = array("I", native), array("Q", native)
        count = self.count
        own: Table = {
            "member": constant("", count),
            "entry": Numbers(bytes(4 * count)),
            "kind": constant(CUBIN, count),
            "sm": Numbers(small[SM::8].tobytes()),
        }
        faults: list[str | None] = [None] * count
        for row in filter(small[FAULT::8].__getitem__, range(count)):
            faults[row] = FAULTS[small[8 * row + FAULT]].format(small[8 * row + SECTION])
        return {
            "object": integers("int64", range(self._first, self._first + count)),
            "file": integers("int64", map(self._first.__add__, self._files)),
            **own,
            **(self._members(small[SM::8].tobytes()) if self._sources else {}),
            "linked": Numbers(bytes(map(ET_EXEC.__eq__, small[TYPE::8]))),
            "size": Numbers(large[SIZE::4].tobytes()),
            "packed": Numbers(self._packed(large[SIZE::4]).tobytes()),
            "sections": integers("int32", large[COUNT::4]),
            "fault": words(faults) if any(small[FAULT::8]) else constant(None, count),
        }

    def _packed(self, sizes: array[int]) -> array[int]:
        """Bytes in files: of a file of its own all of it."""
        for row, source in self._sources.items():
            sizes[row] = source.packed
        return sizes

    def _members(self, sm: bytes) -> Table:
        """Where objects are in their files, where not all are a file of their own."""
        members, entries, kinds = [""] * self.count, [0] * self.count, [CUBIN] * self.count
        for row, source in self._sources.items():
            members[row], entries[row], kinds[row] = source.member, source.entry, source.kind
        return {
            "member": words(members),
            "entry": integers("int32", entries),
            "kind": words(kinds),
            # What was compiled for no chip yet has the target of its entry, if that says one.
            "sm": Numbers(
                sm,
                bytes(
                    kind == CUBIN or arch != 0
                    for kind, arch in zip(kinds, array("I", sm), strict=True)
                ),
            ),
        }

    def sections(self) -> Table:
        natives = self._sections
        table: Table = {}
        for place, name in enumerate(SECTIONS):
            parts = [native[1][place] for native in natives]
            table[name] = Numbers(parts[0] if len(parts) == 1 else b"".join(parts))
        return {
            **table,
            "family": _named([(native[1][FAMILY], *native[2]) for native in natives]),
            "suffix": _named([(native[1][SUFFIX], *native[3]) for native in natives]),
        }


def _named(pieces: list[tuple[bytes, bytes, bytes]]) -> Texts:
    """Names by number, with one dictionary, as if all had been read at once.

    Those with bytes that are not UTF-8 have escapes for them.
    """
    numbers, ends, text = pieces[0] if len(pieces) == 1 else join_words(pieces)
    texts_of = Texts(ends, text, numbers)
    if texts_of.text.isascii():
        return texts_of
    return texts([show_bytes(text).encode() for text in _each(texts_of)])._replace(
        numbers=texts_of.numbers
    )
