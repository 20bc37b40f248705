"""`pylink size`: the bytes of files with device code, by part."""

from __future__ import annotations

import argparse
import errno
import os
import re

from pylink._native.ledger import return_memory
from pylink.diagnostics.stream import printable, show
from pylink.files.atomic import write_whole
from pylink.size.model import DEVICE_KINDS, LEVELS
from pylink.size.walk import measure
from pylink.terminal.arguments import natural_number
from pylink.terminal.progress import Progress
from pylink.terminal.running import WrongArguments, print_error, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.size.levels import Selection
    from pylink.size.model import Sizes

# Exit statuses: success, a limit of --budget is exceeded, any other error.
GOOD, OVER, ERROR = 0, 1, 2
# Rows of a table without --top; the first screen then shows three templates.
TOP = 10

_PROGRAM = "pylink size"


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Show where the bytes of device code are: in wheels and other zip files, "
        "shared libraries, executables, archives, objects, fat binaries, cubins and PTX, and in "
        "directories of these. Bytes are decimal: 1 MB is 1,000,000.",
        epilog="Exit status: 0, 1 if a limit of --budget is exceeded, 2 if something is "
        "unreadable.",
    )
    options.add_argument("files", nargs="+", metavar="FILE", help="file or directory to measure")
    options.add_argument(
        "--by",
        metavar="LEVEL",
        type=_parse_levels,
        help=f"table of this level, or of several with commas: {', '.join(LEVELS)}",
    )
    options.add_argument(
        "--top", type=natural_number, metavar="N", help=f"rows to show, 0 for all (default: {TOP})"
    )
    options.add_argument(
        "--arch", default="", metavar="ARCH", help="count code for this target only, such as sm_90"
    )
    options.add_argument(
        "--match",
        metavar="REGEX",
        type=_parse_pattern,
        help="count only functions whose mangled or readable name matches",
    )
    options.add_argument(
        "--what-if",
        metavar="REGEX",
        type=_parse_pattern,
        help="measure the sizes without functions whose name matches, by compressing again",
    )
    options.add_argument(
        "--thorough",
        action="store_true",
        help="also measure the smallest mode of compression and files without debug data; "
        "compresses about 1 MB a second",
    )
    options.add_argument(
        "--diff", metavar="OLD", help="show what changed since the file or directory OLD, and why"
    )
    options.add_argument(
        "--budget", metavar="FILE", help="check the sizes against the limits in a TOML file"
    )
    options.add_argument(
        "--html", metavar="FILE", help="also write a page with a map that zooms, for a browser"
    )
    form = options.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all rows as one JSON object")
    form.add_argument("--csv", action="store_true", help="print a line for each row (see --by)")
    form.add_argument("--markdown", action="store_true", help="print a table for a page or comment")
    return options


def _parse_levels(text: str) -> tuple[str, ...]:
    """Split the argument of --by; argparse reports a level that does not exist."""
    levels = tuple(text.split(","))
    for level in levels:
        if level not in LEVELS:
            raise argparse.ArgumentTypeError(f"not a level: '{level}' ({', '.join(LEVELS)})")
    return levels


def _parse_pattern(text: str) -> re.Pattern[str]:
    """Compile the argument of an option; argparse reports one that is invalid."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"not a regular expression: {error}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the status is 1 for an exceeded budget, 2 after another error, else 0."""
    return run(parser(), argv, _main, error_status=ERROR)


def _main(arguments: argparse.Namespace) -> int:
    if arguments.what_if and (arguments.diff or arguments.csv or arguments.markdown):
        raise WrongArguments("--what-if has no such form: use it alone, or with --json")
    return_memory()
    if not arguments.budget:
        return _show_sizes(arguments, lambda sizes, old: [])
    from pylink.size import budget

    try:
        limits = budget.read_budget(arguments.budget)
        return _show_sizes(arguments, lambda sizes, old: budget.list_exceeded(limits, sizes, old))
    except budget.BadBudget as error:
        print_error(_PROGRAM, str(error))
        return ERROR


def _show_sizes(
    arguments: argparse.Namespace, exceeded: Callable[[Sizes, Sizes | None], list[str]]
) -> int:
    """Measure and print; return the exit status.

    `exceeded` takes the sizes of the files, and those of OLD in --diff or None. It returns a line
    for each exceeded limit.
    """
    old = experiments = None
    with Progress("measuring", len(arguments.files)) as progress:
        if arguments.diff:
            old = measure([arguments.diff], progress.show_step)
        is_first_screen = not (arguments.by or arguments.arch or arguments.match or arguments.diff)
        is_first_screen = is_first_screen and not (
            arguments.csv or arguments.markdown or arguments.what_if
        )
        if arguments.thorough or arguments.what_if:
            from pylink.size.experiments import Experiments

            experiments = Experiments(arguments.thorough, arguments.what_if)
        sizes = measure(
            arguments.files,
            progress.show_step,
            recompress=is_first_screen,
            experiments=experiments,
            meanwhile=_load_screen,
        )
    if arguments.html:
        _write_page(arguments, sizes, old)
    lines = exceeded(sizes, old)
    show(
        _output_text(sizes, arguments) if old is None else _diff_output_text(old, sizes, arguments)
    )
    for line in lines:
        print_error(_PROGRAM, f"over budget: {line}")
    unreadable = [*(old.unreadable if old else ()), *sizes.unreadable]
    for name, reason in unreadable:
        print_error(_PROGRAM, f"{name}: {reason}")
    return ERROR if unreadable else OVER if lines else GOOD


def _load_screen() -> None:
    """Load the modules that print the sizes, while other threads still measure files."""
    import pylink.size.screen  # noqa: F401 -- loaded ahead


def _write_page(arguments: argparse.Namespace, sizes: Sizes, old: Sizes | None) -> None:
    """Write the page; OSError if it would overwrite the budget or a file with device code.

    `old` are the sizes of --diff.
    """
    from pylink.report.view.sizepage import page

    page_path = arguments.html
    read_paths = {*arguments.files, *filter(None, (arguments.diff, arguments.budget))}
    for measured in filter(None, (sizes, old)):
        files = [measured.files[leaf.file] for leaf in measured.leaves if leaf.kind in DEVICE_KINDS]
        read_paths |= {file.archive or file.name for file in files}
    for path in read_paths:
        if os.path.exists(page_path) and os.path.exists(path) and os.path.samefile(page_path, path):
            raise OSError(errno.EINVAL, "the page would overwrite what was read", page_path)
    title = ", ".join(os.path.basename(path) or path for path in arguments.files)
    write_whole(page_path, page(sizes, title).encode("utf-8", "replace"))


def _output_text(sizes: Sizes, arguments: argparse.Namespace) -> str:
    """Return the text to print for one set of sizes, in the form that the options ask for."""
    from pylink.size import screen
    from pylink.size.levels import Selection

    selection = Selection(arguments.arch, arguments.match)
    top = TOP if arguments.top is None else arguments.top
    if arguments.what_if and not arguments.json:
        from pylink.size.whatif import what_if, what_if_lines, what_if_note
        from pylink.terminal.tables import align_columns

        without = what_if(sizes)
        table = what_if_lines(without, printable(arguments.what_if.pattern))
        return "\n".join([*align_columns(table, " rrr"), "", what_if_note(without), ""])
    selects = bool(arguments.arch or arguments.match)
    by = arguments.by or (("function",) if arguments.match else ("target", "kind"))
    if arguments.json or arguments.csv or arguments.markdown:
        return _format_sizes(sizes, arguments, by, top, selection)
    if arguments.by or selects:
        lines = [*screen.summary_lines(sizes), ""]
        lines += screen.level_table(sizes, by, top, selection)
    else:
        lines = screen.first_screen(sizes, top if arguments.top is not None else 3)
    return "\n".join(lines) + "\n"


def _format_sizes(
    sizes: Sizes, arguments: argparse.Namespace, by: tuple[str, ...], top: int, selection: Selection
) -> str:
    """Return the sizes as JSON, CSV or Markdown.

    `by` are the levels of the rows of CSV and Markdown, and `top` the rows of Markdown (0: all).
    """
    from pylink.size import formats  # the first screen does not need it

    if arguments.json:
        from pylink.size.whatif import what_if

        measured = what_if(sizes) if arguments.what_if else None
        return formats.as_json(sizes, arguments.by or (), selection, measured)
    if arguments.csv:
        return formats.csv_table(sizes, by, selection)
    return formats.markdown_table(sizes, by, top, selection)


def _diff_output_text(old: Sizes, new: Sizes, arguments: argparse.Namespace) -> str:
    """Return the text to print for the difference of two sets of sizes."""
    from pylink.size import diffshow
    from pylink.size.levels import Selection

    selection = Selection(arguments.arch, arguments.match)
    top = TOP if arguments.top is None else arguments.top
    by = arguments.by or (("function",) if arguments.match else ())
    if arguments.json:
        return diffshow.as_json(old, new, by, selection)
    if arguments.csv:
        return diffshow.csv_table(old, new, by or ("target", "kind"), selection)
    if arguments.markdown:
        return diffshow.markdown_text(old, new, by, top, selection)
    return "\n".join(diffshow.text_lines(old, new, by, top, selection)) + "\n"
