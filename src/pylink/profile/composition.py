"""Divides the bytes of an output by kind of section, input file and symbol; the parts add up to it.

A byte belongs to the output section at its offset, in it to the input section that it was copied
from, and in that to the symbol defined there. Bytes that the link creates and bytes between
sections have parts of their own. The inputs with most bytes of each kind are listed one by one,
each with its largest symbols. Inputs of equal size whose names differ only in numbers form one
part, such as `400 x g*_m5.cubin`.
"""

from __future__ import annotations

from collections import Counter

from pylink._native.sectionbytes import section_bytes
from pylink.demangle import demangle
from pylink.facts.rownumbers import ContentsFrom
from pylink.profile.families import family_name
from pylink.profile.groups import group_rows, pattern, skeleton, title
from pylink.tables import symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.phases.results import Placed

# Limits of listed input files of a kind, and of listed symbols of one of these files.
MAX_FILES, MAX_SYMBOLS = 24, 8
# Limit of inputs in one part; a larger part is not divided by symbols.
MAX_MEMBERS = 1000

# Names of the parts that are not inputs or symbols.
HEADERS = "headers and padding"
CREATED_BY_LINK = "created by the link"
UNNAMED = "without a symbol"
OTHER_FILES, OTHER_SYMBOLS = "other files", "other symbols"

# Kind, file and symbol, the last of which may be missing; bytes.
Part = tuple[tuple[str, ...], int]


def output_parts(placed: Placed, image: bytes) -> list[Part]:
    """The parts of an output; their sizes add up to its size."""
    kinds = placed.outs.column("kind")
    sizes = _section_bytes(placed, image)
    inputs = _copied_bytes(placed, sizes, kinds)
    by_kind: dict[int, Counter[int]] = {}
    for (kind, file, _), size in inputs.items():
        by_kind.setdefault(kind, Counter())[file] += size
    kind_sizes: Counter[int] = Counter()
    for section, size in sizes.items():
        kind_sizes[kinds[section]] += size
    names = placed.merged.objects.names
    grouped = {kind: _group_inputs(files, names) for kind, files in by_kind.items()}
    listed_inputs = {
        (kind, file)
        for kind, every in grouped.items()
        for _, group in every[:MAX_FILES]
        for file in group[:MAX_MEMBERS]
    }
    symbols = _symbols(placed, inputs, listed_inputs)
    parts: list[Part] = []
    for kind, size in kind_sizes.most_common():
        files, kind_name = by_kind.get(kind, Counter()), family_name(kind)
        others = sum(files.values())
        for name, group in grouped.get(kind, [])[:MAX_FILES]:
            copied = sum(files[file] for file in group)
            others -= copied
            path = kind_name, name
            if len(group) > MAX_MEMBERS:
                parts.append((path, copied))
                continue
            parts += _by_symbol(
                path,
                copied,
                _join_symbols([symbols.get((kind, file), Counter()) for file in group]),
            )
        parts.append(((kind_name, OTHER_FILES), others))
        parts.append(((kind_name, CREATED_BY_LINK), size - sum(files.values())))
    parts.append(((HEADERS,), len(image) - sum(kind_sizes.values())))
    return [part for part in parts if part[1]]


def _group_inputs(files: Counter[int], names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Group inputs of a kind by similar name and equal size: title and files, largest first."""
    groups_of: dict[str, list[int]] = {}
    for group in group_rows((names[file], size, file) for file, size in files.items()):
        groups_of.setdefault(title([names[file] for file in group]), []).extend(group)
    return sorted(groups_of.items(), key=lambda pair: -sum(files[file] for file in pair[1]))


def _join_symbols(members: Sequence[Counter[str]]) -> Counter[str]:
    """Join the symbols of the inputs of one part: names that differ only in numbers are one."""
    if len(members) == 1:
        return members[0]
    sizes: dict[str, int] = {}
    counts: dict[str, dict[str, int]] = {}
    for member in members:
        for name, size in member.items():
            demangled = demangle(name)
            key = skeleton(demangled)
            sizes[key] = sizes.get(key, 0) + size
            names = counts.setdefault(key, {})
            names[demangled] = names.get(demangled, 0) + 1
    joined: Counter[str] = Counter()
    for key, names in counts.items():
        times = sum(names.values())
        name_pattern = pattern(list(names))
        joined[f"{times:,} x {name_pattern}" if times > 1 else name_pattern] += sizes[key]
    return joined


def _section_bytes(placed: Placed, image: bytes) -> dict[int, int]:
    """Map output sections to their bytes in the file, as `pylink size` counts them."""
    sizes: Counter[int] = Counter()
    for section, _, size in section_bytes(image):
        if section > 0:
            sizes[placed.section_order[section - 1]] += size
    return sizes


def _copied_bytes(
    placed: Placed, sizes: dict[int, int], kinds: list[int]
) -> dict[tuple[int, int, int], int]:
    """Map (kind, file, input section) to the bytes that were copied into the output.

    Sections that the link builds from several inputs are not counted.
    """
    merged = placed.merged
    copied: dict[tuple[int, int, int], int] = {}
    contents = placed.places.column("contents")
    remaining = {out: size for out, size in sizes.items() if contents[out] != ContentsFrom.SPAN}
    sections = merged.objects.sections
    section_sizes, files = sections.column("size"), sections.column("file")
    for number, out in enumerate(merged.out_of):
        available = remaining.get(out)
        if available:
            size = min(section_sizes[number], available)
            if size:
                remaining[out] = available - size
                copied[kinds[out], files[number], number] = size
    return copied


def _symbols(
    placed: Placed, inputs: dict[tuple[int, int, int], int], listed: set[tuple[int, int]]
) -> dict[tuple[int, int], Counter[str]]:
    """Map (kind, file) to the bytes of each symbol, for the input sections in `listed`."""
    objects = placed.merged.objects
    remaining = {
        section: (kind, size)
        for (kind, file, section), size in inputs.items()
        if (kind, file) in listed
    }
    sizes_of: dict[tuple[int, int], Counter[str]] = {}
    for file in sorted({file for _, file in listed}):
        row = objects.files[file]
        for number in range(row.first_symbol, row.first_symbol + row.symbol_count):
            symbol = objects.symbols[number]
            if not symbol.size or symbol.section not in remaining:
                continue
            kind, available = remaining[symbol.section]
            size_taken = min(symbol.size, available)
            if size_taken:
                remaining[symbol.section] = kind, available - size_taken
                name = symbol_name(objects, number)
                sizes_of.setdefault((kind, file), Counter())[name] += size_taken
    return sizes_of


def _by_symbol(path: tuple[str, ...], size: int, symbols: Counter[str]) -> Iterable[Part]:
    largest = symbols.most_common(MAX_SYMBOLS)
    yield from (((*path, name), count) for name, count in largest)
    symbol_bytes = sum(symbols.values())
    yield (*path, OTHER_SYMBOLS), symbol_bytes - sum(count for _, count in largest)
    # A file without symbols of this kind is one part, not a part without a symbol.
    yield (path if not symbol_bytes else (*path, UNNAMED)), size - symbol_bytes
