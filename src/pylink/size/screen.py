"""Shows sizes on a terminal: a first screen with the essentials, and a table of one level."""

from __future__ import annotations

from pylink.diagnostics.stream import printable
from pylink.size.levels import EVERYTHING, INNER, Row, Selection, rows
from pylink.size.model import (
    CUBIN,
    DEVICE,
    LTOIR,
    PTX,
    RELOCATABLE,
    RELOCATABLE_PTX,
    UNREADABLE,
    Sizes,
)
from pylink.size.numbers import bytes_text, share_text
from pylink.size.reductions import Reduction, reductions
from pylink.terminal.tables import align_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TITLES = {
    CUBIN: "linked code",
    RELOCATABLE: "relocatable code",
    PTX: "PTX",
    RELOCATABLE_PTX: "relocatable PTX",
    LTOIR: "LTO-IR",
    UNREADABLE: "unreadable",
}
HOST_TITLE = "host code and other files"
_BAR = 20
_NAME = 60
_MOST_OTHERS = 3
ESTIMATE = "~ shared among functions in proportion to their unpacked bytes; no saving by itself."


def summary_lines(sizes: Sizes) -> list[str]:
    """The total size, the number of files with device code, and the number of targets."""
    installed = sum(leaf.installed for leaf in sizes.leaves)
    with_code = {leaf.file for leaf in sizes.leaves if leaf.kind in DEVICE}
    targets = {
        leaf.target.partition("_")[2]
        for leaf in sizes.leaves
        if leaf.kind in DEVICE and leaf.target
    }
    files = sum(bool(file.name) for file in sizes.files)
    size = f"{bytes_text(installed)} installed"
    if sizes.downloads:
        download = sum(leaf.download or 0 for leaf in sizes.leaves)
        size = f"{bytes_text(download)} to download, {size}"
    verb = "has" if len(with_code) == 1 else "have"
    return [
        f"{size}; {len(with_code)} of {_many(files, 'file')} {verb} device code, "
        f"for {_many(len(targets), 'target')}"
    ]


def first_screen(sizes: Sizes, top: int) -> list[str]:
    """Kinds of code with a bar for each, and the largest templates."""
    lines = [*summary_lines(sizes), ""]
    lines += _kinds(sizes)
    templates = rows(sizes, ("template",))
    lines += _could_go(sizes, templates)
    templates_shown = [row for row in templates if row.functions]
    if templates_shown:
        lines += ["", *_functions(sizes, "largest templates", templates_shown[:top])]
        lines += ["", ESTIMATE]
    lines += ["More: --by target, --by file, --by function, --json"]
    return lines


def _kinds(sizes: Sizes) -> list[str]:
    total_row = Row(())
    merged: dict[str, Row] = {}
    for row in rows(sizes, ("kind",)):
        total_row.installed += row.installed
        total_row.download += row.download
        title = TITLES.get(row.keys[0], HOST_TITLE if row.keys[0] not in DEVICE else row.keys[0])
        if row.keys[0].startswith("kind "):
            title = row.keys[0]
        total = merged.setdefault(title, Row((title,)))
        total.count += row.count
        total.unpacked += row.unpacked
        total.installed += row.installed
        total.download += row.download
    order = [*TITLES.values()]
    kinds = sorted(
        merged.values(),
        key=lambda row: (
            row.keys[0] == HOST_TITLE,
            order.index(row.keys[0]) if row.keys[0] in order else len(order),
        ),
    )
    table = [("what", "entries", *_size_columns(sizes), "")]
    for row in kinds:
        part, all_ = (
            (row.download, total_row.download)
            if sizes.downloads
            else (row.installed, total_row.installed)
        )
        bar = "#" * max(1, round(_BAR * part / all_)) if all_ and part else ""
        cells = _sizes(sizes, row)
        cells.insert(1, share_text(part, all_))
        table.append((row.keys[0], str(row.count) if row.count else "-", *cells, bar))
    return _indent(align_columns(table, " r" + "r" * (len(table[0]) - 3)))


def _could_go(sizes: Sizes, templates: list[Row]) -> list[str]:
    """A line for each reduction with its bytes and its condition, and below it the option to use.

    Class C, which requires knowledge of the sources, has a few lines in a table of its own.
    """
    could_go = reductions(sizes, templates)
    sure = [line for line in could_go if line.letter != "C"]
    lines = _reductions(sizes, "what could go, each by itself", "before you do it", sure)
    # Templates have a table of their own below.
    others = [line for line in could_go if line.letter == "C" and line.rule != "many-instances"]
    title = "what the sources decide"
    return [*lines, *_reductions(sizes, title, "assumed", others[:_MOST_OTHERS])]


def _reductions(
    sizes: Sizes, title: str, condition: str, could_go: Sequence[Reduction]
) -> list[str]:
    if not could_go:
        return []
    sizes_of = ["download", "installed"] if sizes.downloads else ["installed"]
    table = [(title, *sizes_of, "class", condition)]
    for line in could_go:
        cells = [bytes_text(line.installed, estimated=line.estimated)]
        if sizes.downloads:
            cells.insert(0, bytes_text(line.download or 0, estimated=line.estimated))
        table.append((_short(line.title), *cells, line.letter, line.condition))
    head, *lines = _indent(align_columns(table, " " + "r" * len(sizes_of)))
    below = [f"    by: {line.how}" for line in could_go]
    return ["", head, *(text for pair in zip(lines, below, strict=True) for text in pair)]


def _size_columns(sizes: Sizes) -> list[str]:
    if sizes.downloads:
        return ["download", "", "installed", "unpacked"]
    return ["installed", "", "unpacked"]


def _sizes(sizes: Sizes, row: Row, *, inner: bool = False) -> list[str]:
    cells = [bytes_text(row.installed, estimated=row.estimated), bytes_text(row.unpacked)]
    if sizes.downloads:
        cells.insert(0, bytes_text(row.download, estimated=inner and bool(row.functions)))
    return cells


def _functions(sizes: Sizes, title: str, functions: Sequence[Row]) -> list[str]:
    columns = (
        ["download", "installed", "unpacked"] if sizes.downloads else ["installed", "unpacked"]
    )
    table = [(title, "instances", *columns)]
    for row in functions:
        name = _short(row.keys[-1])
        table.append((name, str(row.count), *_sizes(sizes, row, inner=True)))
    return _indent(align_columns(table, " " + "r" * (len(table[0]) - 1)))


def level_table(
    sizes: Sizes, by: Sequence[str], top: int, selection: Selection = EVERYTHING
) -> list[str]:
    """The rows of the given levels, largest first, and the sum of all."""
    all_rows = rows(sizes, by, selection)
    inner = any(level in INNER for level in by) or selection.match is not None
    shown_rows = all_rows[:top] if top else all_rows
    count = "functions" if inner else "entries"
    columns = (
        ["download", "installed", "unpacked"] if sizes.downloads else ["installed", "unpacked"]
    )
    table = [(*by, count, *columns)]
    table += [
        (
            *map(_short, row.keys),
            str(row.count) if row.count else "-",
            *_sizes(sizes, row, inner=inner),
        )
        for row in shown_rows
    ]
    if len(shown_rows) < len(all_rows):
        table.append(
            _rest(
                sizes, by, f"({len(all_rows) - len(shown_rows)} more)", all_rows[len(shown_rows) :]
            )
        )
    table.append(_rest(sizes, by, "sum", all_rows))
    lines = align_columns(table, " " * len(by) + "r" * (len(table[0]) - len(by)))
    if any(row.estimated for row in shown_rows):
        lines += ["", ESTIMATE]
    return lines


def _rest(sizes: Sizes, by: Sequence[str], title: str, rows_left: Sequence[Row]) -> tuple[str, ...]:
    total_row = Row(
        (),
        0,
        sum(row.unpacked for row in rows_left),
        sum(row.installed for row in rows_left),
        sum(row.download for row in rows_left),
    )
    return (title, *[""] * (len(by) - 1), "", *_sizes(sizes, total_row))


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
