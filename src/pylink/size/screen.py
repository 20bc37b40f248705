"""Shows sizes on a terminal: a first screen with the essentials, and a table by any levels."""

from __future__ import annotations

from pylink.diagnostics.stream import printable
from pylink.size.levels import EVERYTHING, Row, Selection, counts_functions, rows
from pylink.size.model import (
    CUBIN,
    DEVICE_KINDS,
    LTOIR,
    PTX,
    RELOCATABLE,
    RELOCATABLE_PTX,
    UNREADABLE,
    Reduction,
    Sizes,
)
from pylink.size.reductions import reductions
from pylink.terminal.numbers import bytes_text, count_text, share_text
from pylink.terminal.tables import align_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Titles of kinds, in the order of the table.
TITLES = {
    CUBIN: "linked code",
    RELOCATABLE: "relocatable code",
    PTX: "PTX",
    RELOCATABLE_PTX: "relocatable PTX",
    LTOIR: "LTO-IR",
    UNREADABLE: "unreadable",
}
HOST_TITLE = "host code and other files"
_BAR_WIDTH = 20  # characters of a bar that stands for all bytes
_MOST_NAME = 60  # characters of a name in a table
_MOST_CLASS_C = 3  # shown reductions of class C, which only the sources decide
# Explains the ~ in front of sizes.
ESTIMATE = "~ shared among functions in proportion to their unpacked bytes; no saving by itself."


def summary_lines(sizes: Sizes) -> list[str]:
    """Return a line: total size, number of files with device code, and number of architectures.

    A real and a virtual architecture with the same number and suffix, such as `sm_80` and
    `compute_80`, count once.
    """
    installed = sum(leaf.installed for leaf in sizes.leaves)
    with_code = {leaf.file for leaf in sizes.leaves if leaf.kind in DEVICE_KINDS}
    architectures = {
        leaf.target.partition("_")[2]
        for leaf in sizes.leaves
        if leaf.kind in DEVICE_KINDS and leaf.target
    }
    files = sum(bool(file.name) for file in sizes.files)
    size = f"{bytes_text(installed)} installed"
    if sizes.downloads:
        download = sum(leaf.download or 0 for leaf in sizes.leaves)
        size = f"{bytes_text(download)} to download, {size}"
    verb = "has" if len(with_code) == 1 else "have"
    return [
        f"{size}; {len(with_code)} of {count_text(files, 'file')} {verb} device code, "
        f"for {count_text(len(architectures), 'architecture')}"
    ]


def first_screen(sizes: Sizes, top: int) -> list[str]:
    """Return the kinds of code with a bar for each, reductions, and the `top` largest templates.

    `top` 0 shows all templates.
    """
    lines = [*summary_lines(sizes), ""]
    lines += _kinds_table(sizes)
    templates = rows(sizes, ("template",))
    lines += _reduction_lines(sizes, templates)
    templates_shown = [row for row in templates if row.functions]
    if templates_shown:
        lines += ["", *_templates_table(sizes, "largest templates", templates_shown[: top or None])]
        lines += ["", ESTIMATE]
    lines += ["More: --by target, --by file, --by function, --json"]
    return lines


def _kinds_table(sizes: Sizes) -> list[str]:
    """Return a table of the kinds of code, and of all other bytes as one row."""
    total_row = Row(())
    merged: dict[str, Row] = {}
    for row in rows(sizes, ("kind",)):
        total_row.installed += row.installed
        total_row.download += row.download
        title = TITLES.get(
            row.keys[0], HOST_TITLE if row.keys[0] not in DEVICE_KINDS else row.keys[0]
        )
        if row.keys[0].startswith("kind "):
            title = row.keys[0]
        total = merged.setdefault(title, Row((title,)))
        total.count += row.count
        total.unpacked += row.unpacked
        total.installed += row.installed
        total.download += row.download
    ordered_titles = [*TITLES.values()]
    kinds = sorted(
        merged.values(),
        key=lambda row: (
            row.keys[0] == HOST_TITLE,
            ordered_titles.index(row.keys[0])
            if row.keys[0] in ordered_titles
            else len(ordered_titles),
        ),
    )
    table = [("what", "entries", *_size_columns(sizes), "")]
    for row in kinds:
        size, total_size = (
            (row.download, total_row.download)
            if sizes.downloads
            else (row.installed, total_row.installed)
        )
        bar = "#" * max(1, round(_BAR_WIDTH * size / total_size)) if total_size and size else ""
        cells = _size_cells(sizes, row)
        cells.insert(1, share_text(size, total_size))
        table.append((row.keys[0], str(row.count) if row.count else "-", *cells, bar))
    return _indent(align_columns(table, " r" + "r" * (len(table[0]) - 3)))


def _reduction_lines(sizes: Sizes, templates: list[Row]) -> list[str]:
    """Return a line for each reduction with its bytes and its condition, and what to do below it.

    Class C, which requires knowledge of the sources, has a few lines in a table of its own.
    """
    could_go = reductions(sizes, templates)
    advised = [line for line in could_go if line.letter != "C"]
    lines = _reductions_table(sizes, "what could go, each by itself", "before you do it", advised)
    # Templates have a table of their own below.
    others = [line for line in could_go if line.letter == "C" and line.rule != "many-instances"]
    title = "what the sources decide"
    return [*lines, *_reductions_table(sizes, title, "assumed", others[:_MOST_CLASS_C])]


def _reductions_table(
    sizes: Sizes, title: str, condition: str, could_go: Sequence[Reduction]
) -> list[str]:
    """Return a table of reductions; `title` and `condition` are heads of its columns."""
    if not could_go:
        return []
    size_columns = ["download", "installed"] if sizes.downloads else ["installed"]
    table = [(title, *size_columns, "class", condition)]
    for line in could_go:
        cells = [bytes_text(line.installed, estimated=line.estimated)]
        if sizes.downloads:
            cells.insert(0, bytes_text(line.download or 0, estimated=line.estimated))
        table.append((short_name(line.title), *cells, line.letter, line.condition))
    head, *lines = _indent(align_columns(table, " " + "r" * len(size_columns)))
    advice_lines = [f"    by: {line.how}" for line in could_go]
    return ["", head, *(text for pair in zip(lines, advice_lines, strict=True) for text in pair)]


def _size_columns(sizes: Sizes) -> list[str]:
    """Return the heads of sizes, with an empty head for the percentage after the first."""
    if sizes.downloads:
        return ["download", "", "installed", "unpacked"]
    return ["installed", "", "unpacked"]


def _size_cells(sizes: Sizes, row: Row, *, of_functions: bool = False) -> list[str]:
    """Return the sizes of a row as text; `of_functions` is true for a row of functions."""
    cells = [bytes_text(row.installed, estimated=row.estimated), bytes_text(row.unpacked)]
    if sizes.downloads:
        cells.insert(0, bytes_text(row.download, estimated=of_functions and bool(row.functions)))
    return cells


def _templates_table(sizes: Sizes, title: str, functions: Sequence[Row]) -> list[str]:
    """Return a table of templates with their number of instances."""
    columns = (
        ["download", "installed", "unpacked"] if sizes.downloads else ["installed", "unpacked"]
    )
    table = [(title, "instances", *columns)]
    for row in functions:
        name = short_name(row.keys[-1])
        table.append((name, str(row.count), *_size_cells(sizes, row, of_functions=True)))
    return _indent(align_columns(table, " " + "r" * (len(table[0]) - 1)))


def level_table(
    sizes: Sizes, by: Sequence[str], top: int, selection: Selection = EVERYTHING
) -> list[str]:
    """Return a table by the levels `by`, largest row first, and the sum; `top` 0 shows all rows."""
    all_rows = rows(sizes, by, selection)
    of_functions = counts_functions(by, selection)
    shown_rows = all_rows[:top] if top else all_rows
    count = "functions" if of_functions else "entries"
    columns = (
        ["download", "installed", "unpacked"] if sizes.downloads else ["installed", "unpacked"]
    )
    table = [(*by, count, *columns)]
    table += [
        (
            *map(short_name, row.keys),
            str(row.count) if row.count else "-",
            *_size_cells(sizes, row, of_functions=of_functions),
        )
        for row in shown_rows
    ]
    if len(shown_rows) < len(all_rows):
        table.append(
            _sum_row(
                sizes, by, f"({len(all_rows) - len(shown_rows)} more)", all_rows[len(shown_rows) :]
            )
        )
    table.append(_sum_row(sizes, by, "sum", all_rows))
    lines = align_columns(table, " " * len(by) + "r" * (len(table[0]) - len(by)))
    if any(row.estimated for row in shown_rows):
        lines += ["", ESTIMATE]
    return lines


def _sum_row(
    sizes: Sizes, by: Sequence[str], title: str, summed_rows: Sequence[Row]
) -> tuple[str, ...]:
    """Return one line with the sum of several rows."""
    total_row = Row(
        (),
        0,
        sum(row.unpacked for row in summed_rows),
        sum(row.installed for row in summed_rows),
        sum(row.download for row in summed_rows),
    )
    return (title, *[""] * (len(by) - 1), "", *_size_cells(sizes, total_row))


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]


def short_name(name: str) -> str:
    """Return a name on one line, cut if it is too long for a table."""
    name = printable(name)
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 3]}..."
