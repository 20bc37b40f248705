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

# Limits of listed input files of a section kind (similar files are listed as one), and of listed
# symbols of one of these.
MAX_FILES, MAX_SYMBOLS = 24, 8
# Most similar inputs in a part that is divided by symbols; a part with more inputs is not.
MAX_MEMBERS = 1000

# Names of the parts that are not inputs or symbols.
HEADERS = "headers and padding"
CREATED_BY_LINK = "created by the link"
UNNAMED = "without a symbol"
OTHER_FILES, OTHER_SYMBOLS = "other files", "other symbols"

# A path of up to three names (section kind, input file, symbol), and the bytes of that part.
Part = tuple[tuple[str, ...], int]


def output_parts(placed: Placed, image: bytes) -> list[Part]:
    """Return paths (kind, input file, symbol) with their bytes, which add up to all of `image`."""
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
        for kind, groups in grouped.items()
        for _, group in groups[:MAX_FILES]
        for file in group[:MAX_MEMBERS]
    }
    symbols = _symbol_bytes(placed, inputs, listed_inputs)
    parts: list[Part] = []
    for kind, size in kind_sizes.most_common():
        files, kind_name = by_kind.get(kind, Counter()), family_name(kind)
        remaining = sum(files.values())  # bytes of inputs that are not listed
        for name, group in grouped.get(kind, [])[:MAX_FILES]:
            copied = sum(files[file] for file in group)
            remaining -= copied
            path = kind_name, name
            if len(group) > MAX_MEMBERS:
                parts.append((path, copied))
                continue
            parts += _divide_by_symbol(
                path,
                copied,
                _join_symbols([symbols.get((kind, file), Counter()) for file in group]),
            )
        parts.append(((kind_name, OTHER_FILES), remaining))
        parts.append(((kind_name, CREATED_BY_LINK), size - sum(files.values())))
    parts.append(((HEADERS,), len(image) - sum(kind_sizes.values())))
    return [part for part in parts if part[1]]


def _group_inputs(files: Counter[int], names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return groups of inputs with similar names and equal sizes, largest first.

    A group is its title and the numbers of its files. `files` has the bytes of each file.
    """
    files_by_title: dict[str, list[int]] = {}
    for group in group_rows((names[file], size, file) for file, size in files.items()):
        files_by_title.setdefault(title([names[file] for file in group]), []).extend(group)
    return sorted(files_by_title.items(), key=lambda pair: -sum(files[file] for file in pair[1]))


def _join_symbols(members: Sequence[Counter[str]]) -> Counter[str]:
    """Join the symbols of the inputs of one part: names that differ only in numbers become one.

    `members` has the bytes of each symbol for each input. Names are demangled, except for those of
    a single input, whose symbols are returned as they are.
    """
    if len(members) == 1:
        return members[0]
    sizes_by_key: dict[str, int] = {}
    counts_by_key: dict[str, dict[str, int]] = {}
    for member in members:
        for name, size in member.items():
            demangled = demangle(name)
            name_skeleton = skeleton(demangled)
            sizes_by_key[name_skeleton] = sizes_by_key.get(name_skeleton, 0) + size
            name_counts = counts_by_key.setdefault(name_skeleton, {})
            name_counts[demangled] = name_counts.get(demangled, 0) + 1
    joined: Counter[str] = Counter()
    for name_skeleton, name_counts in counts_by_key.items():
        count = sum(name_counts.values())
        name_pattern = pattern(list(name_counts))
        joined[f"{count:,} x {name_pattern}" if count > 1 else name_pattern] += sizes_by_key[
            name_skeleton
        ]
    return joined


def _section_bytes(placed: Placed, image: bytes) -> dict[int, int]:
    """Map row numbers of output sections to their bytes in the file, as `pylink size` counts."""
    sizes: Counter[int] = Counter()
    for section, _, size in section_bytes(image):
        if section > 0:
            sizes[placed.section_order[section - 1]] += size
    return sizes


def _copied_bytes(
    placed: Placed, sizes: dict[int, int], kinds: list[int]
) -> dict[tuple[int, int, int], int]:
    """Map (kind, file, input section) to the bytes that were copied into the output.

    `sizes` has the bytes of each output section, `kinds` the kind of each. Sections whose contents
    the link creates are not counted.
    """
    merged = placed.merged
    copied: dict[tuple[int, int, int], int] = {}
    contents = placed.places.column("contents")
    # Bytes of each output section that are not yet assigned to an input section.
    remaining = {
        out_section: size
        for out_section, size in sizes.items()
        if contents[out_section] != ContentsFrom.SPAN
    }
    sections = merged.objects.sections
    section_sizes, files = sections.column("size"), sections.column("file")
    for section, out_section in enumerate(merged.out_of):
        available = remaining.get(out_section)
        if available:
            size = min(section_sizes[section], available)
            if size:
                remaining[out_section] = available - size
                copied[kinds[out_section], files[section], section] = size
    return copied


def _symbol_bytes(
    placed: Placed, inputs: dict[tuple[int, int, int], int], listed: set[tuple[int, int]]
) -> dict[tuple[int, int], Counter[str]]:
    """Map (kind, file) to the bytes of each symbol, for the (kind, file) in `listed`.

    `inputs` are the copied bytes of input sections.
    """
    objects = placed.merged.objects
    # Kind of each input section, and its bytes that are not yet assigned to a symbol.
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


def _divide_by_symbol(path: tuple[str, ...], size: int, symbols: Counter[str]) -> Iterable[Part]:
    """Yield the part of a file, `size` bytes at `path`, divided by symbols."""
    largest = symbols.most_common(MAX_SYMBOLS)
    yield from (((*path, name), symbol_size) for name, symbol_size in largest)
    symbol_bytes = sum(symbols.values())
    yield (*path, OTHER_SYMBOLS), symbol_bytes - sum(symbol_size for _, symbol_size in largest)
    # If no symbols divide the file, its part has the path of the file, without UNNAMED below it.
    yield (path if not symbol_bytes else (*path, UNNAMED)), size - symbol_bytes
