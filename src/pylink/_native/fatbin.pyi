"""Finds the entries of fat binaries and host objects, without decompressing.

A "source" is an input of the link, or a member of an archive. Tables are `bytes` of packed rows,
little endian; `pylink.rowformats` has the formats in capitals. Every offset and size in them is
inside the arena. docs/inputs.md has the format.
"""

from collections.abc import Callable
from typing import TypeAlias

# By source (an input, or a member of an archive): the number of its arena (int32), its (offset u64,
# size u64) in bytes there, and a byte of `pylink.facts.inputkinds`.
ArenaNumbers: TypeAlias = bytes
Extents: TypeAlias = bytes
Kinds: TypeAlias = bytes
# Rows of ENTRY, one for each piece of device code, in order; a row of SOURCE for each source; a row
# of FAULT for each damaged source. `pylink.rowformats` has the columns.
EntryRows: TypeAlias = bytes
SourceRows: TypeAlias = bytes
FaultRows: TypeAlias = bytes
Scan: TypeAlias = tuple[EntryRows, SourceRows, FaultRows]
# Rows of PICK, their source numbers, special rows, unmatched and bare sources, bits of codecs: the
# result of `pick_entries`, which describes each.
PickRows: TypeAlias = bytes
Picked: TypeAlias = tuple[PickRows, list[int], list[int], list[int], list[int], int]
# Names of kernels with global names, of other kernels, and of variables, in order, as keys.
HostNames: TypeAlias = tuple[dict[bytes, None], dict[bytes, None], dict[bytes, None]]

def find_entries(
    arenas: list[bytes], arena_numbers: ArenaNumbers, extents: Extents, kinds: Kinds
) -> Scan:
    """Find the entries of all fat binaries and host objects: (entries, sources, faults).

    `arena_numbers` is empty if all sources are in the first arena. Sources of other kinds have no
    entries. `faults` has a row for each damaged source, whose entries end in front of the damage.
    `ValueError` if the numbers of rows differ, `IndexError` for an extent outside its arena.
    """

def pick_entries(
    scan: Scan,
    sources: tuple[ArenaNumbers, Extents, Kinds],
    rank: Callable[[int, int, int], int],
    limit: int,
    linked: dict[int, set[int]],
) -> Picked:
    """Pick the code that a link takes: (picks, sources, special, unmatched, bare, codecs).

    `scan` is the result of `find_entries` for `sources`: arena numbers, extents and kinds.
    `rank(kind, sm, flags)` ranks an entry, negative if it cannot be used. The best entry of each
    container is picked, the first of equal ones, but nothing from a damaged source. `limit` is the
    total of decompressed bytes. If `linked` has a source, only the containers in its set are picked
    from. Sources that cannot have entries are picked whole. `picks` are rows of PICK of
    `pylink.rowformats`, `sources` the source number of each, and `special` the numbers of picks
    that are not cubins or cannot be linked. `unmatched` are numbers of undamaged sources with a
    container of which nothing is picked, `bare` those of sources without containers, and `codecs`
    has a bit, 1 << codec, for each codec that is needed. `ValueError` if columns differ in length;
    exceptions of `rank` are passed on.
    """

def collect_names(
    arenas: list[bytes], arena_numbers: ArenaNumbers, rows: SourceRows, numbers: list[int]
) -> HostNames | None:
    """Return names that host code of these sources uses: (external, internal, variables).

    `numbers` are those of the sources. The names are those of kernels with global names, of other
    kernels, and of variables, in order. None if one of the sources has no device code or no list.
    `IndexError` for an extent outside its arena.
    """
