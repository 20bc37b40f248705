"""A report on a terminal: tables, bars and what rules said; plain text where it is piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pylink.diagnostics.stream import printable
from pylink.report.api.descriptions import label
from pylink.report.model import Report
from pylink.report.view.blocks import Bars, Block, Row, row_of
from pylink.report.view.bytetree import FUNCTIONS, PARTS, UNNAMED, Node, byte_tree, counted
from pylink.report.view.compare import Change
from pylink.report.view.markup import plain
from pylink.report.view.numbers import text
from pylink.report.view.overview import (
    PROCESSOR,
    advice,
    failures,
    longest_of_name,
    phase_name,
    phases,
    session_rows,
    shortened,
    summary,
    were_judged,
    whole_first,
)
from pylink.report.view.pages import DURATION, ActionPage, RuleMessage, action_pages, focus_words

BAR_WIDTH = 32
NAME_WIDTH = 44
_FIRST_FUNCTIONS = 5  # that the first screen names
PARTS_OF_PARTS = 3  # of each kind of section, its largest inputs
CELL_WIDTH = 52  # a label and a value beside each other
SAID_INDENT = 9  # what stands below the first line of a message
FILE_WIDTH = 160  # columns, where there is no terminal to ask
BAR = "\u2588"
HALF_BAR = "\u258c"

STYLES = {"INF": "green", "WRN": "yellow", "ERR": "bold red", "OPT": "cyan"}


class PrintableConsole(Console):
    """Writes what comes from reports for people: names there are those of inputs."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = segment.text.split("\n")
                yield Segment("\n".join(map(printable, lines)), segment.style)


def console(*, color: bool | None = None) -> Console:
    """Standard output; `color` None leaves colors to the terminal and NO_COLOR."""
    no_color = None if color is None else not color
    out = PrintableConsole(highlight=False, soft_wrap=True, force_terminal=color, no_color=no_color)
    if not sys.stdout.isatty():
        out.width = FILE_WIDTH
    return out


def show_details(
    out: Console, report: Report, *, instances: bool = False, everything: bool = True
) -> None:
    """What rules advise, the whole link, then each action; `instances` lists those of metrics.

    Without `everything` that is one screen: the advice, and what each phase took.
    """
    pages = action_pages(report)
    advised = advice(pages)
    if advised:
        _heading(out, "\nWhat to do")
        _show_said(
            out,
            [
                RuleMessage(message.rule, message.mark, name, message.text)
                for name, message in advised
            ],
        )
        out.print()
    elif were_judged(pages):
        out.print(Text("\nNo rule found anything to change.\n"))
    broken = failures(pages)
    if broken:
        names = ", ".join(dict.fromkeys(message.rule for message in broken))
        rules = "1 rule" if len(broken) == 1 else f"{len(broken)} rules"
        out.print(Text(f"{rules} could not be applied: {names}", style="dim"))
    if not everything and phases(report):
        show_phases(out, report)
        show_bytes(out, report)
        out.print(Text("--all shows every action and section", style="dim"))
        return
    tree = byte_tree(report)
    if tree is not None:
        _heading(out, "Where the bytes of the output are")
        _show_tree(out, tree, tree.size, shortened(report))
        out.print()
    shown = pages if instances else longest_of_name(pages)
    for page in whole_first(shown):
        _show_page(out, page, instances=instances)
    if len(shown) < len(pages):
        rest = len(pages) - len(shown)
        out.print(Text(f"{rest} shorter actions are left out; --instances shows them", style="dim"))


def show_bytes(out: Console, report: Report) -> None:
    """What the output consists of by part, and its largest functions, as `pylink size` has them."""
    parts = counted(report, PARTS)
    if not parts:
        return
    whole = sum(size for _, size in parts)
    functions = [pair for pair in counted(report, FUNCTIONS) if pair[0] not in UNNAMED]
    for title, rows in (("Output", parts), ("Largest functions", functions[:_FIRST_FUNCTIONS])):
        table = Table(box=None, pad_edge=False)
        table.add_column(title, max_width=NAME_WIDTH, overflow="ellipsis", no_wrap=True)
        table.add_column("Bytes", justify="right")
        table.add_column("Share", justify="right")
        table.add_column("")
        for name, size in rows:
            share = f"{100 * size / whole:.1f}%"
            table.add_row(Text(name), text(size, "byte"), share, Text(bar(size, whole), "cyan"))
        if title == "Output":
            table.add_row("all", text(whole, "byte"), "", "")
        if rows:
            out.print()
            out.print(table)


def show_phases(out: Console, report: Report) -> None:
    """A row per phase: processor time, time on the wall and its share."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Phase")
    for title in ("Processor", "Wall", "Share of wall"):
        table.add_column(title, justify="right")
    table.add_column("")
    whole = sum(each.number(DURATION) or 0 for each in phases(report))
    for action in phases(report):
        wall = action.number(DURATION) or 0
        table.add_row(
            phase_name(action),
            text(action.number(PROCESSOR), "nsecond"),
            text(wall, "nsecond"),
            f"{100 * wall / whole if whole else 0:.1f}%",
            Text(bar(wall, whole), style="cyan"),
        )
    out.print(table)


def show_headline(out: Console, headline: Sequence[str]) -> None:
    """What became of the whole link, before any single number."""
    for line in headline:
        out.print(Text(line, style="bold"))


def _show_page(out: Console, page: ActionPage, *, instances: bool) -> None:
    _heading(out, f"[{page.index}] {page.name}")
    if not page.sections and not page.messages:
        out.print(Text("  no sections; see --page raw", style="dim"))
    for section in page.sections:
        out.print()
        out.print(Text(f"  {section.title}", style="bold"))
        for block in section.blocks:
            _show_block(out, block, instances=instances)
        _show_said(out, section.messages, focus=True)
    for block in page.blocks:
        _show_block(out, block, instances=instances)
    _show_said(out, page.messages, focus=True)
    out.print()


def show_raw(out: Console, report: Report, *, instances: bool = False) -> None:
    """Every metric of every action, by name."""
    for page in action_pages(report):
        _heading(out, f"[{page.index}] {page.name}")
        metrics = page.action.metrics
        rows = [row_of(name, name, metrics[name]) for name in sorted(metrics)]
        _show_rows(out, rows, instances=instances)
        out.print()


def show_session(out: Console, report: Report, file: str) -> None:
    """What the report says in a sentence, and where it comes from."""
    lines = summary(report)
    if lines:
        out.print(Text(lines, style="bold"))
    table = Table.grid(padding=(0, 2))
    for name, shown in session_rows(report, file):
        table.add_row(Text(name, style="dim"), Text(shown))
    out.print(table)


def show_changes(
    out: Console, changes: Iterable[Change], names: Sequence[str], most: int | None = None
) -> None:
    """What differs between a baseline and another report, `most` rows of it."""
    every = list(changes)
    rows = every[:most]
    out.print(Text(f"{names[1]} against {names[0]}", style="bold"))
    if not rows:
        out.print(Text("Nothing changed by 5% or more."))
        return
    table = Table(box=None)
    for title in ("Action", "Metric"):
        table.add_column(title, overflow="fold")
    for title in ("Baseline", "Now", "Change"):
        table.add_column(title, justify="right", no_wrap=True)
    for change in rows:
        ratio = change.ratio or 1
        style = "red" if ratio > 1.1 else "green" if ratio < 0.9 else ""
        table.add_row(
            change.action,
            label(change.metric),
            text(change.before, change.unit),
            text(change.after, change.unit),
            Text(change.shown, style=style),
        )
    out.print(table)
    if len(rows) < len(every):
        left = len(every) - len(rows)
        out.print(Text(f"{left} smaller changes are left out; --all shows them", style="dim"))


def _heading(out: Console, title: str) -> None:
    out.print(Text(title, style="bold cyan"))


def _show_block(out: Console, block: Block, *, instances: bool) -> None:
    if block.title:
        out.print(Text(f"    {block.title}", style="dim"))
    if not block.bars:
        _show_table(out, block, instances=instances)
        return
    if block.measure and block.measure != block.title:
        out.print(Text(f"    {block.measure}", style="dim"))
    for compared in block.bars:
        _show_bars(out, compared)


def _show_table(out: Console, block: Block, *, instances: bool) -> None:
    """Rows, as many beside each other as asked for and as there is room for."""
    if instances or block.columns == 1:
        _show_rows(out, block.rows, instances=instances)
        return
    table = _grid(4, 2)
    for _ in range(block.columns):
        table.add_column(overflow="fold")
        table.add_column(justify="right", no_wrap=True)
    for line in block.cells(max(out.width // CELL_WIDTH, 1)):
        cells = [
            Text(text, style="" if row.value is not None else "dim")
            for row in line
            for text in (row.label, row.shown)
        ]
        table.add_row("", *cells)
    out.print(table)


def _show_rows(out: Console, rows: Sequence[Row], *, instances: bool) -> None:
    table = _grid(4, 2)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    for row in rows:
        style = "" if row.value is not None else "dim"
        table.add_row("", Text(row.label), Text(row.shown, style=style))
        for name, value in row.instances if instances else ():
            table.add_row("", Text(f"  {name}", style="dim"), text(value, row.unit))
    out.print(table)


def _show_bars(out: Console, compared: Bars) -> None:
    """Bars against the longest of them."""
    most = compared.longest
    table = _grid(6, 1)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for name, value, unit in compared.bars:
        table.add_row(
            "", Text(short(name)), Text(bar(value, most), style="cyan"), text(value, unit)
        )
    if compared.title:
        out.print(Text(f"    {compared.title}"))
    out.print(table)
    if compared.rest:
        out.print(Text(f"      {compared.rest}", style="dim"))


def _show_tree(out: Console, tree: Node, whole: int, shorten: Callable[[str], str]) -> None:
    """The largest parts of the output, and of each the largest of its own."""
    table = _grid(4, 2)
    table.add_column(no_wrap=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for part in tree.largest():
        shares = [(part, "", "")]
        shares += [(share, "  ", "dim") for share in part.largest()[:PARTS_OF_PARTS]]
        for share, indent, style in shares:
            table.add_row(
                "",
                Text(f"{indent}{short(shorten(share.name))}", style=style),
                text(share.size, "byte"),
                f"{100 * share.size / whole if whole else 0:.1f}%",
                Text(bar(share.size, whole), style="cyan"),
            )
    out.print(table)


def _grid(indent: int, gap: int) -> Table:
    """A table without lines, that far from the left; padding instead would fill its lines up."""
    table = Table.grid(padding=(0, gap))
    table.add_column(width=indent - gap)
    return table


def short(name: str) -> str:
    """A name that leaves room for its bar; of a path the end says most, of others the beginning."""
    if len(name) <= NAME_WIDTH:
        return name
    return f"\u2026{name[1 - NAME_WIDTH :]}" if "/" in name else f"{name[: NAME_WIDTH - 1]}\u2026"


def bar(value: float, longest: float) -> str:
    """A bar of half characters; what is not 0 has at least half a one."""
    if longest <= 0 or value <= 0:
        return ""
    halves = max(1, round(2 * BAR_WIDTH * value / longest))
    return BAR * (halves // 2) + HALF_BAR * (halves % 2)


def _show_said(out: Console, messages: Iterable[RuleMessage], *, focus: bool = False) -> None:
    """What rules said; with `focus`, the metrics that it is about, too."""
    for message in messages:
        mark = Text(f"    {message.mark or '   '}  ", style=STYLES.get(message.mark, ""))
        title = f"{message.title}: " if message.title else ""
        # A rule's table stands below its words, and all of it beside the mark.
        mark.append(
            f"{title}{plain(message.text)}".replace("\n", f"\n{' ' * SAID_INDENT}"), style="default"
        )
        out.print(mark)
        for words in map(focus_words, message.focus if focus else ()):
            out.print(Text(f"{' ' * SAID_INDENT}{words}", style="dim"))
