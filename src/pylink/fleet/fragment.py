"""Makes one fragment of an index: some files, their device code, and its sections."""

from __future__ import annotations

import itertools
from array import array
from dataclasses import dataclass

from pylink._native.columnpages import join_words
from pylink._native.cubinfiles import read_cubins
from pylink.facts.elf import ET_EXEC
from pylink.facts.outcomes import IndexedKind, IndexFault
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
from pylink.fleet.digests import find_hasher, list_hashed
from pylink.fleet.parquet import (
    Numbers,
    Texts,
    make_constant_column,
    make_integer_column,
    make_numbered_column,
    make_text_column,
    make_word_column,
    pack_table,
)
from pylink.fleet.parts import LARGE_FILE
from pylink.fleet.state import Rows
from pylink.fleet.targets import directory_targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink._native.sectionindex import Columns
    from pylink.fleet.contents import Batch, CodeSource, FileResult
    from pylink.fleet.parquet import Table
    from pylink.fleet.parts import Part
    from pylink.fleet.walk import Files

# By the IndexedKind that the native reader found: the kind of file in the index; "" for a file that
# the module `contents` must read.
NATIVE_KINDS = {IndexedKind.CUBIN: CUBIN, IndexedKind.OTHER: OTHER, IndexedKind.UNDECIDED: ""}

# Texts on why the sections of an object cannot be read; {} stands for the number of a section.
FAULTS = {
    IndexFault.HEADER: "it has no ELF header of a cubin",
    IndexFault.TABLE: "its section headers do not lie in the file",
    IndexFault.NAMES: "it has no section with the names of sections",
    IndexFault.NAME: "section {}: its name does not lie in the section with names",
    IndexFault.RANGE: "section {}: its bytes do not lie in the file",
    IndexFault.SUM: "sections up to number {} have more than four times the bytes of the file",
    IndexFault.NAME_SUM: "names of sections up to number {} have more bytes than the file",
}


# Bytes of an ObjectItem (sectioncolumns.pxd), the native row of an object. FAULT to TYPE are
# indices of fields in the row as an array of 32-bit numbers, SIZE and COUNT of 64-bit numbers.
OBJECT_SIZE = 32
FAULT, SECTION, SM, TYPE = range(4)
SIZE, COUNT = 2, 3


# Indices of the name columns among those of sections.
FAMILY, SUFFIX = (list(SECTIONS).index(name) for name in ("family", "suffix"))


@dataclass(frozen=True, slots=True)
class Fragment:
    """The index of a part of the files: Parquet files by table name, rows for the state file.

    `size` are the bytes of the files that were read.
    """

    tables: dict[str, bytes]
    rows: Rows
    size: int


def make_fragment(part: Part) -> Fragment:
    """Make the fragment of a part; equal parts give identical bytes on every machine."""
    first = first_number(part.run, part.number)
    rows = part.files.rows
    fragment = FragmentRows(first)
    kind_numbers = bytes([IndexedKind.UNDECIDED]) * rows
    if find_hasher():
        fragment.check(rows)
        kind_numbers, native = read_cubins(part.files, LARGE_FILE, first, find_hasher())
        fragment.add_cubins(
            [row for row, kind in enumerate(kind_numbers) if kind == IndexedKind.CUBIN],
            None,
            native,
        )
    results: dict[int, FileResult] = {}
    remaining = [row for row, kind in enumerate(kind_numbers) if not NATIVE_KINDS[kind]]
    for batch in _read_batches(remaining, part.files, results):
        fragment.check(len(batch.cubins) + len(batch.others))
        native = list_hashed(batch.arena, batch.extents, first + fragment.count)
        fragment.add_cubins([source.file for source in batch.cubins], batch.cubins, native)
        fragment.add_others(batch.others)
    stamps = array("q", part.files.stamps)
    for row, result in results.items():
        stamps[4 * row : 4 * row + 4] = array("q", result.stamp)
    files = part.files._replace(stamps=stamps.tobytes()).followed_by(_without_times(part.gone))
    tables = {
        "files": _make_files_table(files, kind_numbers, results, first),
        "objects": fragment.objects(),
        "sections": fragment.sections(),
    }
    written_tables = {name: pack_table(TABLES[name], table) for name, table in tables.items()}
    gone = bytes(rows) + b"\1" * part.gone.rows
    return Fragment(written_tables, Rows(part.name, files, gone), sum(part.files.sizes))


def _read_batches(
    rows: Sequence[int], files: Files, results: dict[int, FileResult]
) -> Iterable[Batch]:
    """Read the files that native code could not index, in batches."""
    if not rows:
        return ()
    from pylink.fleet.contents import read_contents

    return read_contents(rows, files, results)


def _without_times(files: Files) -> Files:
    """Return the files with only their sizes; times and inodes are 0."""
    stamps = array("q", bytes(len(files.stamps)))
    stamps[::4] = files.sizes
    return files._replace(stamps=stamps.tobytes())


def _make_files_table(
    files: Files, kind_numbers: bytes, results: dict[int, FileResult], first: int
) -> Table:
    """Make the table of files, whose first row has the number `first`.

    `kind_numbers` has an IndexedKind for each file that exists; removed files follow in `files`. By
    row, `results` has what the module `contents` detected in the other existing files.
    """
    count = files.rows
    kinds: list[str | None] = [
        *map(NATIVE_KINDS.__getitem__, kind_numbers),
        *[GONE] * (count - len(kind_numbers)),
    ]
    notes: dict[int, str] = {}
    for row, result in results.items():
        kinds[row] = result.kind
        if result.note is not None:
            notes[row] = result.note
    targets, numbers = directory_targets(files.ends, files.text)
    paths = Texts(files.ends, files.text)
    names = (
        paths
        if files.text.isascii()
        else make_text_column([show_bytes(text).encode() for text in _split_texts(paths)])
    )
    stamps = array("q", files.stamps)
    return {
        "file": make_integer_column("int64", range(first, first + count)),
        "root": make_numbered_column(files.root_names, array("i", files.root_numbers)),
        "path": paths,
        "name": names,
        "target": make_numbered_column(
            [target.encode() for target in targets], array("i", numbers)
        ),
        **{
            name: Numbers(stamps[index::4].tobytes())
            for index, name in enumerate(("size", "mtime", "ctime", "inode"))
        },
        "kind": make_word_column(kinds),
        "note": make_word_column([*map(notes.get, range(count))])
        if notes
        else make_constant_column(None, count),
    }


def _split_texts(column: Texts) -> list[bytes]:
    """Return the texts of a column, or of its dictionary."""
    ends = array("q", column.ends)
    return [column.text[start:end] for start, end in itertools.pairwise(ends)]


class FragmentRows:
    """Collects objects and sections, batch by batch; `first` is the number of the first object."""

    def __init__(self, first: int) -> None:
        self.count = 0
        self._first = first
        self._files: list[int] = []
        self._sources: dict[int, CodeSource] = {}  # by object that `contents` read
        self._natives: list[bytes] = []
        self._sections: list[Columns] = []

    def check(self, more: int) -> None:
        """Raise OverflowError if there is no room for `more` objects."""
        if self.count + more > MOST_ROWS:
            raise OverflowError(f"one fragment holds at most {MOST_ROWS} objects")

    def add_cubins(
        self, rows: Sequence[int], sources: Sequence[CodeSource] | None, native: Columns
    ) -> None:
        """Add cubins that are the files in these rows or, with `sources`, lie in these files.

        `native` has their objects and sections, as list_sections returns them.
        """
        self._natives.append(native[0])
        self._sections.append(native)
        self._add(rows, sources)

    def add_others(self, sources: Sequence[CodeSource]) -> None:
        """Add PTX and LTO-IR, which have no sections."""
        for source in sources:
            row = array("Q", bytes(OBJECT_SIZE))
            row[SIZE] = source.size
            row[SM // 2] |= source.arch << 32 * (SM % 2)
            self._natives.append(row.tobytes())
        self._add([source.file for source in sources], sources)

    def _add(self, rows: Sequence[int], sources: Sequence[CodeSource] | None) -> None:
        """Record in which files the next objects are and, with `sources`, where in these files."""
        if sources is not None:
            self._sources.update(enumerate(sources, self.count))
        self._files += rows
        self.count += len(rows)

    def objects(self) -> Table:
        """Make the table of objects."""
        native = b"".join(self._natives)
        small, large = array("I", native), array("Q", native)
        count = self.count
        defaults: Table = {
            "member": make_constant_column("", count),
            "entry": Numbers(bytes(4 * count)),
            "kind": make_constant_column(CUBIN, count),
            "sm": Numbers(small[SM::8].tobytes()),
        }
        faults: list[str | None] = [None] * count
        for row in filter(small[FAULT::8].__getitem__, range(count)):
            faults[row] = FAULTS[small[8 * row + FAULT]].format(small[8 * row + SECTION])
        return {
            "object": make_integer_column("int64", range(self._first, self._first + count)),
            "file": make_integer_column("int64", map(self._first.__add__, self._files)),
            **defaults,
            **(self._members(small[SM::8].tobytes()) if self._sources else {}),
            "linked": Numbers(bytes(map(ET_EXEC.__eq__, small[TYPE::8]))),
            "size": Numbers(large[SIZE::4].tobytes()),
            "packed": Numbers(self._packed_sizes(large[SIZE::4]).tobytes()),
            "sections": make_integer_column("int32", large[COUNT::4]),
            "fault": make_word_column(faults)
            if any(small[FAULT::8])
            else make_constant_column(None, count),
        }

    def _packed_sizes(self, sizes: array[int]) -> array[int]:
        """Return `sizes`, with packed sizes set for the objects that `contents` read."""
        for row, source in self._sources.items():
            sizes[row] = source.packed
        return sizes

    def _members(self, sm: bytes) -> Table:
        """Return the columns that say where in their files objects are, their kinds and SMs."""
        members, entries, kinds = [""] * self.count, [0] * self.count, [CUBIN] * self.count
        for row, source in self._sources.items():
            members[row], entries[row], kinds[row] = source.member, source.entry, source.kind
        return {
            "member": make_word_column(members),
            "entry": make_integer_column("int32", entries),
            "kind": make_word_column(kinds),
            # The SM is null for PTX and LTO-IR whose entry in a fat binary states none.
            "sm": Numbers(
                sm,
                bytes(
                    kind == CUBIN or arch != 0
                    for kind, arch in zip(kinds, array("I", sm), strict=True)
                ),
            ),
        }

    def sections(self) -> Table:
        """Make the table of sections."""
        natives = self._sections
        table: Table = {}
        for index, name in enumerate(SECTIONS):
            parts = [native[1][index] for native in natives]
            table[name] = Numbers(parts[0] if len(parts) == 1 else b"".join(parts))
        return {
            **table,
            "family": _join_names([(native[1][FAMILY], *native[2]) for native in natives]),
            "suffix": _join_names([(native[1][SUFFIX], *native[3]) for native in natives]),
        }


def _join_names(columns: list[tuple[bytes, bytes, bytes]]) -> Texts:
    """Join columns of names, each with a dictionary, into one with a common dictionary.

    Bytes that are not UTF-8 are escaped.
    """
    numbers, ends, text = columns[0] if len(columns) == 1 else join_words(columns)
    texts_of = Texts(ends, text, numbers)
    if texts_of.text.isascii():
        return texts_of
    return make_text_column(
        [show_bytes(text).encode() for text in _split_texts(texts_of)]
    )._replace(numbers=texts_of.numbers)
