"""What the bytes of an output are: by kind of section, input file and symbol, adding up to it.

A byte belongs to the section whose place it is in, there to the input section that it was copied
from, and there to the symbol that is defined at it. What the link makes itself, and what lies
between sections, has names of its own. Of each kind the inputs with most bytes are told apart, and
of each of these the largest symbols.
"""

from __future__ import annotations

from collections import Counter

from pylink.facts.elf import NO_BYTES
from pylink.profile.families import family_name
from pylink.tables import symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.phases.results import Placed

# Input files of a kind, and symbols of one of these files, that are told apart.
MOST_FILES, MOST_SYMBOLS = 24, 8

# What there is beside inputs and symbols.
HEADERS = "headers and padding"
MADE = "made by the link"
UNNAMED = "without a symbol"
OTHER_FILES, OTHER_SYMBOLS = "other files", "other symbols"

WRITTEN_ANEW, TWINS = 1, 2  # PlaceRow.made; rows.pxd has the same

# Kind, file and symbol, the last of which may be missing; bytes.
Part = tuple[tuple[str, ...], int]


def composition(placed: Placed, total: int) -> list[Part]:
    """The parts of an output of `total` bytes, which add up to it."""
    kinds = placed.outs.column("kind")
    sizes = _section_bytes(placed)
    inputs = _copied(placed, sizes, kinds)
    by_kind: dict[int, Counter[int]] = {}
    for (kind, file, _), size in inputs.items():
        by_kind.setdefault(kind, Counter())[file] += size
    whole: Counter[int] = Counter()
    for out, size in sizes.items():
        whole[kinds[out]] += size
    shown = {
        (kind, file) for kind, files in by_kind.items() for file, _ in files.most_common(MOST_FILES)
    }
    symbols = _symbols(placed, inputs, shown)
    names = placed.merged.objects.names
    parts: list[Part] = []
    for kind, size in whole.most_common():
        files, title = by_kind.get(kind, Counter()), family_name(kind)
        for file, copied in files.most_common(MOST_FILES):
            path = title, names[file]
            parts += _by_symbol(path, copied, symbols.get((kind, file), Counter()))
        others = sum(files.values()) - sum(count for _, count in files.most_common(MOST_FILES))
        parts.append(((title, OTHER_FILES), others))
        parts.append(((title, MADE), size - sum(files.values())))
    parts.append(((HEADERS,), total - sum(whole.values())))
    return [part for part in parts if part[1]]


def _section_bytes(placed: Placed) -> dict[int, int]:
    """By output section, its bytes in the file; those that a twin shares are not its own."""
    offsets, sizes_there, made = map(placed.places.column, ("offset", "size", "made"))
    types = placed.outs.column("type")
    extents = [
        (offsets[out], made[out] == TWINS, sizes_there[out], out)
        for out in placed.section_order
        if sizes_there[out] and types[out] not in NO_BYTES
    ]
    sizes: dict[int, int] = {}
    reached = 0
    for offset, _, size, out in sorted(extents):
        fresh = offset + size - max(offset, reached)
        if fresh > 0:
            sizes[out] = fresh
            reached = offset + size
    return sizes


def _copied(
    placed: Placed, sizes: dict[int, int], kinds: list[int]
) -> dict[tuple[int, int, int], int]:
    """By kind, file and input section, the bytes that were copied into the output.

    What is written anew out of several inputs is nobody's.
    """
    merged = placed.merged
    found: dict[tuple[int, int, int], int] = {}
    made = placed.places.column("made")
    room = {out: size for out, size in sizes.items() if made[out] != WRITTEN_ANEW}
    sections = merged.objects.sections
    given, files = sections.column("size"), sections.column("file")
    for number, out in enumerate(merged.out_of):
        left = room.get(out)
        if left:
            size = min(given[number], left)
            if size:
                room[out] = left - size
                found[kinds[out], files[number], number] = size
    return found


def _symbols(
    placed: Placed, inputs: dict[tuple[int, int, int], int], shown: set[tuple[int, int]]
) -> dict[tuple[int, int], Counter[str]]:
    """By kind and file, the bytes of each symbol in the input sections of `shown`."""
    objects = placed.merged.objects
    room = {
        section: (kind, size)
        for (kind, file, section), size in inputs.items()
        if (kind, file) in shown
    }
    found: dict[tuple[int, int], Counter[str]] = {}
    for file in sorted({file for _, file in shown}):
        row = objects.files[file]
        for number in range(row.first_symbol, row.first_symbol + row.symbol_count):
            symbol = objects.symbols[number]
            if not symbol.size or symbol.section not in room:
                continue
            kind, left = room[symbol.section]
            taken = min(symbol.size, left)
            if taken:
                room[symbol.section] = kind, left - taken
                name = symbol_name(objects, number)
                found.setdefault((kind, file), Counter())[name] += taken
    return found


def _by_symbol(path: tuple[str, ...], size: int, symbols: Counter[str]) -> Iterable[Part]:
    largest = symbols.most_common(MOST_SYMBOLS)
    yield from (((*path, name), count) for name, count in largest)
    named = sum(symbols.values())
    yield (*path, OTHER_SYMBOLS), named - sum(count for _, count in largest)
    # A file without any symbol in the kind needs no line that says so.
    yield (path if not named else (*path, UNNAMED)), size - named
