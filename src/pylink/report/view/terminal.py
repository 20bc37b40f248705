"""Shows a report on a terminal: tables, bars and messages of rules; plain text in a pipe."""

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
from pylink.report.view import overview
from pylink.report.view.blocks import Bars, Block, Row, row_of
from pylink.report.view.bytetree import FUNCTIONS, PARTS, UNNAMED, Node, byte_tree, instance_sizes
from pylink.report.view.compare import Change
from pylink.report.view.markup import strip_markup
from pylink.report.view.numbers import format_value
from pylink.report.view.pages import DURATION, ActionPage, RuleMessage, action_pages, focus_text
from pylink.terminal.numbers import count_text, share_text

BAR_WIDTH = 32
NAME_WIDTH = 44
_MAX_FUNCTIONS = 5  # number of the largest functions that are listed without --all
MAX_INPUTS_OF_KIND = 3  # number of the largest inputs to list for each kind of section
CELL_WIDTH = 52  # characters of a label and its value in a table
MESSAGE_INDENT = 9  # blanks in front of the lines of a message after its first
FILE_WIDTH = 160  # characters of a line if the output is not a terminal
BAR = "\u2588"
HALF_BAR = "\u258c"
# A change beyond these ratios is colored.
SLOWER_RATIO, FASTER_RATIO = 1.1, 0.9

# Styles of the marks of messages.
STYLES = {"INF": "green", "WRN": "yellow", "ERR": "bold red", "OPT": "cyan"}


class PrintableConsole(Console):
    """Escapes control characters: names in reports come from inputs."""

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
    """Return a console on standard output; with `color` None, the terminal and NO_COLOR decide."""
    no_color = None if color is None else not color
    output = PrintableConsole(
        highlight=False, soft_wrap=True, force_terminal=color, no_color=no_color
    )
    if not sys.stdout.isatty():
        output.width = FILE_WIDTH
    return output


def show_details(
    output: Console, report: Report, *, instances: bool = False, everything: bool = True
) -> None:
    """Print advice of rules, the bytes of the output, the whole link, then the other actions.

    `instances` lists the instances of metrics, too, and all actions: without it, only the longest
    ones of each name are shown. Without `everything`, print one screen of a report with phases:
    the advice, the time of each phase, and the bytes of the output.
    """
    pages = action_pages(report)
    phase_messages = overview.advice(pages)
    if phase_messages:
        _heading(output, "\nWhat to do")
        _show_messages(
            output,
            [
                RuleMessage(message.rule, message.mark, name, message.text)
                for name, message in phase_messages
            ],
        )
        output.print()
    elif overview.were_rules_applied(pages):
        output.print(Text("\nNo rule found anything to change.\n"))
    failure_messages = overview.failures(pages)
    if failure_messages:
        names = ", ".join(dict.fromkeys(message.rule for message in failure_messages))
        rules = count_text(len(failure_messages), "rule")
        output.print(Text(f"{rules} could not be applied: {names}", style="dim"))
    if not everything and overview.phase_actions(report):
        _show_phases(output, report)
        show_bytes(output, report)
        output.print(Text("--all shows every action and section", style="dim"))
        return
    tree = byte_tree(report)
    if tree is not None:
        _heading(output, "Where the bytes of the output are")
        _show_tree(output, tree, tree.size, overview.path_shortener(report))
        output.print()
    shown_pages = pages if instances else overview.longest_of_each_name(pages)
    for page in overview.put_whole_link_first(shown_pages):
        _show_page(output, page, instances=instances)
    if len(shown_pages) < len(pages):
        omitted = len(pages) - len(shown_pages)
        output.print(
            Text(f"{omitted} shorter actions are omitted; --instances shows them", style="dim")
        )


def show_bytes(output: Console, report: Report) -> None:
    """Print the output's bytes by part, and its largest functions, as in `pylink size`."""
    parts = instance_sizes(report, PARTS)
    if not parts:
        return
    total = sum(size for _, size in parts)
    functions = [pair for pair in instance_sizes(report, FUNCTIONS) if pair[0] not in UNNAMED]
    for title, rows in (("Output", parts), ("Largest functions", functions[:_MAX_FUNCTIONS])):
        table = Table(box=None, pad_edge=False)
        table.add_column(title, max_width=NAME_WIDTH, overflow="ellipsis", no_wrap=True)
        table.add_column("Bytes", justify="right")
        table.add_column("Share", justify="right")
        table.add_column("")
        for name, size in rows:
            table.add_row(
                Text(name),
                format_value(size, "byte"),
                share_text(size, total, 1),
                Text(bar(size, total), "cyan"),
            )
        if title == "Output":
            table.add_row("all", format_value(total, "byte"), "", "")
        if rows:
            output.print()
            output.print(table)


def _show_phases(output: Console, report: Report) -> None:
    """Print a row per phase: processor time, wall time, and its share of the link's wall time."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Phase")
    for title in ("Processor", "Wall", "Share of wall"):
        table.add_column(title, justify="right")
    table.add_column("")
    phases = overview.phase_actions(report)
    # A report may lack the action for the whole link.
    total = sum(link.number(DURATION) or 0 for link in report.ranges()) or sum(
        phase.number(DURATION) or 0 for phase in phases
    )
    for action in phases:
        wall = action.number(DURATION) or 0
        table.add_row(
            overview.phase_name(action),
            format_value(action.number(overview.PROCESSOR), "nsecond"),
            format_value(wall, "nsecond"),
            share_text(wall, total, 1),
            Text(bar(wall, total), style="cyan"),
        )
    output.print(table)


def show_headline(output: Console, headline: Sequence[str]) -> None:
    """Print the sentences on the whole link."""
    for line in headline:
        output.print(Text(line, style="bold"))


def _show_page(output: Console, page: ActionPage, *, instances: bool) -> None:
    """Print one action: its sections, blocks and messages."""
    _heading(output, f"[{page.index}] {page.name}")
    if not page.sections and not page.messages:
        output.print(Text("  no sections; see --page raw", style="dim"))
    for section in page.sections:
        output.print()
        output.print(Text(f"  {section.title}", style="bold"))
        for block in section.blocks:
            _show_block(output, block, instances=instances)
        _show_messages(output, section.messages, focus=True)
    for block in page.blocks:
        _show_block(output, block, instances=instances)
    _show_messages(output, page.messages, focus=True)
    output.print()


def show_raw(output: Console, report: Report, *, instances: bool = False) -> None:
    """Print every metric of every action, by name."""
    for page in action_pages(report):
        _heading(output, f"[{page.index}] {page.name}")
        metrics = page.action.metrics
        rows = [row_of(name, name, metrics[name]) for name in sorted(metrics)]
        _show_rows(output, rows, instances=instances)
        output.print()


def show_session(output: Console, report: Report, file: str) -> None:
    """Print the summary of a report, and where it comes from; `file` is its name."""
    lines = overview.summary(report)
    if lines:
        output.print(Text(lines, style="bold"))
    table = Table.grid(padding=(0, 2))
    for name, value in overview.session_rows(report, file):
        table.add_row(Text(name, style="dim"), Text(value))
    output.print(table)


def show_changes(
    output: Console, changes: Iterable[Change], names: Sequence[str], limit: int | None = None
) -> None:
    """Print the changes from a baseline to another report, at most `limit` rows.

    `names` are the names of the two files, the baseline first.
    """
    all_changes = list(changes)
    rows = all_changes[:limit]
    output.print(Text(f"{names[1]} against {names[0]}", style="bold"))
    if not rows:
        output.print(Text("Nothing changed by 5% or more."))
        return
    table = Table(box=None)
    for title in ("Action", "Metric"):
        table.add_column(title, overflow="fold")
    for title in ("Baseline", "Now", "Change"):
        table.add_column(title, justify="right", no_wrap=True)
    for change in rows:
        ratio = change.ratio or 1
        style = "red" if ratio > SLOWER_RATIO else "green" if ratio < FASTER_RATIO else ""
        table.add_row(
            change.action,
            label(change.metric),
            format_value(change.before, change.unit),
            format_value(change.after, change.unit),
            Text(change.change_text, style=style),
        )
    output.print(table)
    if len(rows) < len(all_changes):
        omitted = len(all_changes) - len(rows)
        output.print(Text(f"{omitted} smaller changes are omitted; --all shows them", style="dim"))


def _heading(output: Console, title: str) -> None:
    """Print a title."""
    output.print(Text(title, style="bold cyan"))


def _show_block(output: Console, block: Block, *, instances: bool) -> None:
    """Print a block as a table or as bars."""
    if block.title:
        output.print(Text(f"    {block.title}", style="dim"))
    if not block.bars:
        _show_table(output, block, instances=instances)
        return
    if block.measure and block.measure != block.title:
        output.print(Text(f"    {block.measure}", style="dim"))
    for compared in block.bars:
        _show_bars(output, compared)


def _show_table(output: Console, block: Block, *, instances: bool) -> None:
    """Print the rows of a block, in as many columns as the block requests and the width allows."""
    if instances or block.columns == 1:
        _show_rows(output, block.rows, instances=instances)
        return
    table = _grid(4, 2)
    for _ in range(block.columns):
        table.add_column(overflow="fold")
        table.add_column(justify="right", no_wrap=True)
    for line in block.cells(max(output.width // CELL_WIDTH, 1)):
        cells = [
            Text(text, style="" if row.value is not None else "dim")
            for row in line
            for text in (row.label, row.value_text)
        ]
        table.add_row("", *cells)
    output.print(table)


def _show_rows(output: Console, rows: Sequence[Row], *, instances: bool) -> None:
    """Print a line for each row; `instances` adds a line for each instance."""
    table = _grid(4, 2)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    for row in rows:
        style = "" if row.value is not None else "dim"
        table.add_row("", Text(row.label), Text(row.value_text, style=style))
        for name, value in row.instances if instances else ():
            table.add_row("", Text(f"  {name}", style="dim"), format_value(value, row.unit))
    output.print(table)


def _show_bars(output: Console, compared: Bars) -> None:
    """Print bars relative to the longest one."""
    longest = compared.longest
    table = _grid(6, 1)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for name, value, unit in compared.bars:
        table.add_row(
            "",
            Text(short(name)),
            Text(bar(value, longest), style="cyan"),
            format_value(value, unit),
        )
    if compared.title:
        output.print(Text(f"    {compared.title}"))
    output.print(table)
    if compared.rest:
        output.print(Text(f"      {compared.rest}", style="dim"))


def _show_tree(output: Console, tree: Node, total: int, shorten: Callable[[str], str]) -> None:
    """Print the largest parts of the output (kinds of sections), and the largest parts of each.

    `total` is the size of the output, and `shorten` shortens paths in names.
    """
    table = _grid(4, 2)
    table.add_column(no_wrap=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for part in tree.largest():
        shares = [(part, "", "")]
        shares += [(share, "  ", "dim") for share in part.largest()[:MAX_INPUTS_OF_KIND]]
        for share, indent, style in shares:
            table.add_row(
                "",
                Text(f"{indent}{short(shorten(share.name))}", style=style),
                format_value(share.size, "byte"),
                share_text(share.size, total, 1),
                Text(bar(share.size, total), style="cyan"),
            )
    output.print(table)


def _grid(indent: int, gap: int) -> Table:
    """Return a table without lines, whose empty first column indents it by `indent` characters.

    Columns are `gap` characters apart. Padding for the indent would fill lines with blanks at their
    end.
    """
    table = Table.grid(padding=(0, gap))
    table.add_column(width=indent - gap)
    return table


def short(name: str) -> str:
    """Return a name, cut to `NAME_WIDTH`: a path at its start, another name at its end."""
    if len(name) <= NAME_WIDTH:
        return name
    return f"\u2026{name[1 - NAME_WIDTH :]}" if "/" in name else f"{name[: NAME_WIDTH - 1]}\u2026"


def bar(value: float, longest: float) -> str:
    """Return a bar of block characters, in steps of half a character; at least one step above 0.

    The bar for `longest` has `BAR_WIDTH` characters.
    """
    if longest <= 0 or value <= 0:
        return ""
    halves = max(1, round(2 * BAR_WIDTH * value / longest))
    return BAR * (halves // 2) + HALF_BAR * (halves % 2)


def _show_messages(
    output: Console, messages: Iterable[RuleMessage], *, focus: bool = False
) -> None:
    """Print messages of rules; with `focus`, also the metrics that they concern."""
    for message in messages:
        line = Text(f"    {message.mark or '   '}  ", style=STYLES.get(message.mark, ""))
        title = f"{message.title}: " if message.title else ""
        # Further lines of a message, such as a table, are indented to the right of the mark.
        line.append(
            f"{title}{strip_markup(message.text)}".replace("\n", f"\n{' ' * MESSAGE_INDENT}"),
            style="default",
        )
        output.print(line)
        for metric_text in map(focus_text, message.focus if focus else ()):
            output.print(Text(f"{' ' * MESSAGE_INDENT}{metric_text}", style="dim"))
