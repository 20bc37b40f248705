"""What the bytes of an output are: by kind of section, input file and symbol, adding up to it.

A byte belongs to the section whose place it is in, there to the input section that it was copied
from, and there to the symbol that is defined at it. What the link makes itself, and what lies
between sections, has names of its own. The inputs with most bytes of each kind are listed one by
one, each with its largest symbols. Inputs of equally many bytes whose names differ in their numbers
alone are one part, such as `400 x g*_m5.cubin`.
"""

from __future__ import annotations

from collections import Counter

from pylink._native.ledger import section_bytes
from pylink.demangle import demangle
from pylink.profile.families import family_name
from pylink.profile.groups import groups, pattern, skeleton, title
from pylink.tables import FROM_SPAN, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.phases.results import Placed

# Input files of a kind, and symbols of one of these files, that are listed one by one.
MOST_FILES, MOST_SYMBOLS = 24, 8
# Inputs that are one part, up to which their symbols are looked at.
MOST_MEMBERS = 1000

# What there is beside inputs and symbols.
HEADERS = "headers and padding"
MADE = "made by the link"
UNNAMED = "without a symbol"
OTHER_FILES, OTHER_SYMBOLS = "other files", "other symbols"

# Kind, file and symbol, the last of which may be missing; bytes.
Part = tuple[tuple[str, ...], int]


def composition(placed: Placed, image: bytes) -> list[Part]:
    """The parts of an output, which add up to it."""
    kinds = placed.outs.column("kind")
    sizes = _section_bytes(placed, image)
    inputs = _copied(placed, sizes, kinds)
    by_kind: dict[int, Counter[int]] = {}
    for (kind, file, _), size in inputs.items():
        by_kind.setdefault(kind, Counter())[file] += size
    whole: Counter[int] = Counter()
    for out, size in sizes.items():
        whole[kinds[out]] += size
    names = placed.merged.objects.names
    grouped = {kind: _groups(files, names) for kind, files in by_kind.items()}
    shown = {
        (kind, file)
        for kind, every in grouped.items()
        for _, group in every[:MOST_FILES]
        for file in group[:MOST_MEMBERS]
    }
    symbols = _symbols(placed, inputs, shown)
    parts: list[Part] = []
    for kind, size in whole.most_common():
        files, kind_name = by_kind.get(kind, Counter()), family_name(kind)
        others = sum(files.values())
        for name, group in grouped.get(kind, [])[:MOST_FILES]:
            copied = sum(files[file] for file in group)
            others -= copied
            path = kind_name, name
            if len(group) > MOST_MEMBERS:
                parts.append((path, copied))
                continue
            parts += _by_symbol(
                path, copied, _joined([symbols.get((kind, file), Counter()) for file in group])
            )
        parts.append(((kind_name, OTHER_FILES), others))
        parts.append(((kind_name, MADE), size - sum(files.values())))
    parts.append(((HEADERS,), len(image) - sum(whole.values())))
    return [part for part in parts if part[1]]


def _groups(files: Counter[int], names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """The inputs of a kind by title, those alike in name and bytes together, the largest first."""
    groups_of: dict[str, list[int]] = {}
    for group in groups((names[file], size, file) for file, size in files.items()):
        groups_of.setdefault(title([names[file] for file in group]), []).extend(group)
    return sorted(groups_of.items(), key=lambda pair: -sum(files[file] for file in pair[1]))


def _joined(members: Sequence[Counter[str]]) -> Counter[str]:
    """The symbols of inputs that are one part: names that differ in their numbers alone are one."""
    if len(members) == 1:
        return members[0]
    sizes: dict[str, int] = {}
    counts: dict[str, dict[str, int]] = {}
    for member in members:
        for name, size in member.items():
            shown = demangle(name)
            key = skeleton(shown)
            sizes[key] = sizes.get(key, 0) + size
            names = counts.setdefault(key, {})
            names[shown] = names.get(shown, 0) + 1
    joined: Counter[str] = Counter()
    for key, names in counts.items():
        times = sum(names.values())
        what = pattern(list(names))
        joined[f"{times:,} x {what}" if times > 1 else what] += sizes[key]
    return joined


def _section_bytes(placed: Placed, image: bytes) -> dict[int, int]:
    """By output section, its bytes in the file, as `pylink size` counts them."""
    sizes: Counter[int] = Counter()
    for section, _, size in section_bytes(image):
        if section > 0:
            sizes[placed.section_order[section - 1]] += size
    return sizes


def _copied(
    placed: Placed, sizes: dict[int, int], kinds: list[int]
) -> dict[tuple[int, int, int], int]:
    """By kind, file and input section, the bytes that were copied into the output.

    What is written anew out of several inputs is nobody's.
    """
    merged = placed.merged
    copied: dict[tuple[int, int, int], int] = {}
    contents = placed.places.column("contents")
    room = {out: size for out, size in sizes.items() if contents[out] != FROM_SPAN}
    sections = merged.objects.sections
    given, files = sections.column("size"), sections.column("file")
    for number, out in enumerate(merged.out_of):
        left = room.get(out)
        if left:
            size = min(given[number], left)
            if size:
                room[out] = left - size
                copied[kinds[out], files[number], number] = size
    return copied


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
    sizes_of: dict[tuple[int, int], Counter[str]] = {}
    for file in sorted({file for _, file in shown}):
        row = objects.files[file]
        for number in range(row.first_symbol, row.first_symbol + row.symbol_count):
            symbol = objects.symbols[number]
            if not symbol.size or symbol.section not in room:
                continue
            kind, room_left = room[symbol.section]
            size_taken = min(symbol.size, room_left)
            if size_taken:
                room[symbol.section] = kind, room_left - size_taken
                name = symbol_name(objects, number)
                sizes_of.setdefault((kind, file), Counter())[name] += size_taken
    return sizes_of


def _by_symbol(path: tuple[str, ...], size: int, symbols: Counter[str]) -> Iterable[Part]:
    largest = symbols.most_common(MOST_SYMBOLS)
    yield from (((*path, name), count) for name, count in largest)
    named = sum(symbols.values())
    yield (*path, OTHER_SYMBOLS), named - sum(count for _, count in largest)
    # A file without any symbol in the kind needs no line that says so.
    yield (path if not named else (*path, UNNAMED)), size - named
