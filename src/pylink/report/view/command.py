"""`pylink report`: show the files of `--profile` and `--profile-aprof`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pylink import aprof
from pylink.diagnostics.stream import printable, write
from pylink.files.atomic import write_whole
from pylink.files.reading import is_text, read_incoming
from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.model.report import MAGIC
from pylink.report.view.arguments import PAGES, PROGRAM, parser
from pylink.terminal.progress import Progress
from pylink.terminal.running import print_note, run

# Limit of the printed rows of changes without --all, so that they fit on a screen.
SCREEN_ROWS = 20

# Limit of plots on a page for each report of --profile-aprof, as in `figures`. That module is not
# imported here, since it needs matplotlib.
MAX_CURVES = 12


@dataclass(slots=True)
class Files:
    """The files of the command, each with its name: reports of --profile and --profile-aprof."""

    reports: list[tuple[str, Report]] = field(default_factory=list)
    growth: list[tuple[str, aprof.Report]] = field(default_factory=list)


def main(argv: Sequence[str]) -> int:
    """Run the command; return 0, or 1 after a message on what was wrong.

    That is a file that cannot be read or written, or a request that cannot be met, such as an
    unknown section. The status is 2 for unknown arguments.
    """
    return run(parser(), argv, _main, (ReportError, aprof.MalformedReport), intermixed=True)


def _main(options: argparse.Namespace) -> int:
    if options.list_sections or options.list_rules or options.list_sets:
        from pylink.report.view.listing import list_files

        return list_files(vars(options), PROGRAM)
    if options.query_metrics:
        from pylink.report.api.descriptions import DESCRIPTIONS

        width = max(map(len, DESCRIPTIONS))
        lines = (
            f"{name:{width}}  {description}\n" for name, description in sorted(DESCRIPTIONS.items())
        )
        write(sys.stdout, "".join(lines))
        return 0
    if not options.files:
        raise ReportError("no report given; see pylink report --help")
    files = Files()
    for name in options.files:
        _read_file(name, files)
    if files.reports:
        _prepare(options, files)
    if options.export:
        _export(options, files)
        if not _has_output_option(options):
            return 0
    if options.metrics:
        _restrict_reports(options, files)
    options.page = options.page or PAGES[0]
    _show(options, files)
    return 0


def _has_output_option(options: argparse.Namespace) -> bool:
    """Return whether options request output besides the report that --export writes."""
    return bool(
        options.csv
        or options.json
        or options.html
        or options.plot
        or options.compare
        or options.fit
        or options.all
        or options.instances
        or options.metrics
        or options.page
    )


def _read_file(name: str, files: Files) -> None:
    """Read a file and add it to `files`; its first bytes show the format."""
    data = read_incoming(name, is_wanted=lambda head: head.startswith(MAGIC) or is_text(head))
    if data.startswith(MAGIC):
        from pylink.report.file import parse_report

        files.reports.append((name, parse_report(data, name)))
    else:
        files.growth.append((name, aprof.parse(data, name)))


def _prepare(options: argparse.Namespace, files: Files) -> None:
    """Add to the last report the growth from report to report, and requested sections and rules."""
    from pylink.report.view.runs import add_runs

    reports = [report for _, report in files.reports]
    add_runs(reports)
    directories = options.section_folder or options.section_folder_recursive
    if not (options.apply_rules or options.section or options.set or options.rule or directories):
        return
    from pylink.report.preparation import prepare

    problems = prepare(
        reports[-1],
        directories=options.section_folder,
        recursive=options.section_folder_recursive,
        sections=options.section,
        sets=options.set,
        rules=options.rule,
        with_rules=options.apply_rules or bool(options.rule),
    )
    for problem in problems:
        print_note(PROGRAM, problem)


def _restrict_reports(options: argparse.Namespace, files: Files) -> None:
    """Reduce reports to the requested metrics, without sections, which show other metrics."""
    from pylink.report.view.selection import with_metrics

    if not files.reports:
        raise ReportError("--metrics needs a report of --profile")
    files.reports = [
        (name, with_metrics(report, options.metrics)) for name, report in files.reports
    ]
    options.page = "raw" if options.page in (None, "details") else options.page


def _export(options: argparse.Namespace, files: Files) -> None:
    """Write the last report to the file of --export."""
    if not files.reports:
        raise ReportError("--export needs a report of --profile")
    from pylink.report.file import write_report

    write_report(files.reports[-1][1], options.export)


def _show(options: argparse.Namespace, files: Files) -> None:
    """Show the files in the form that the options request."""
    if options.html or options.plot:
        _draw(options, files)
    elif options.fit:
        _show_fits(files)
    elif options.csv or options.json:
        _show_flat(options, files)
    else:
        _show_terminal(options, files)


def _draw(options: argparse.Namespace, files: Files) -> None:
    """Write the page of --html, or the picture of --plot."""
    if options.html:
        from pylink.report.view.html import page

        with Progress("drawing", MAX_CURVES * len(files.growth)) as progress:
            page_html = page(files.reports, files.growth, progress)
        write_whole(options.html, page_html.encode())
        return
    path = Path(options.plot)
    if path.suffix not in (".svg", ".png"):
        raise ReportError(f"{path}: --plot draws .svg and .png files")
    from pylink.report.view.figures import plot

    write_whole(str(path), plot(files.reports, files.growth, path.suffix[1:]))


def _show_fits(files: Files) -> None:
    """Print the growth of the cost of routines, for each growth report."""
    if not files.growth:
        raise ReportError("--fit needs a report of --profile-aprof")
    for name, report in files.growth:
        write(sys.stdout, f"{printable(name)}\n{aprof.fit_table(report)}")


def _show_flat(options: argparse.Namespace, files: Files) -> None:
    """Print the last report as CSV or JSON."""
    from pylink.report.view import flat

    if not files.reports:
        raise ReportError("--csv and --json need a report of --profile")
    name, report = files.reports[-1]
    if options.json:
        text = flat.as_json(report)
    elif options.page == "session":
        text = flat.session_csv(report, name)
    else:
        csv_functions = {
            "raw": flat.raw_csv,
            "source": flat.source_csv,
            "details": flat.details_csv,
        }
        text = csv_functions[options.page](report)
    write(sys.stdout, text)


def _show_terminal(options: argparse.Namespace, files: Files) -> None:
    """Print reports for people: changes first, then the last report, then growth."""
    if not files.reports and not options.compare:
        _show_fits(files)
        return
    from pylink.report.view import compare, terminal
    from pylink.report.view.code import show_source

    output = terminal.console(color=None if options.color == "auto" else options.color == "always")
    if len(files.reports) > 1 and (options.compare or options.page == "details"):
        (first_name, before), (last_name, after) = files.reports[0], files.reports[-1]
        all_changes = compare.compare(before, after)
        changes = compare.notable_changes(all_changes)
        terminal.show_headline(output, compare.headline(all_changes))
        terminal.show_changes(
            output, changes, (first_name, last_name), limit=None if options.all else SCREEN_ROWS
        )
    elif options.compare:
        raise ReportError("--compare needs two reports: the baseline, and one to compare with it")
    if not options.compare and files.reports:
        name, report = files.reports[-1]
        terminal.show_session(output, report, name)
        if options.page == "details":
            # Everything is shown if options name sections or rules, so that these are, too.
            has_named_sections = (
                options.section or options.set or options.rule or options.section_folder
            )
            everything = bool(
                options.all
                or options.instances
                or has_named_sections
                or options.section_folder_recursive
            )
            terminal.show_details(
                output, report, instances=options.instances, everything=everything
            )
        elif options.page == "raw":
            terminal.show_raw(output, report, instances=options.instances)
        elif options.page == "source":
            show_source(output, report, instances=options.instances)
    if files.growth and not options.compare:
        _show_fits(files)
