"""The arguments of `pylink report`."""

from __future__ import annotations

import argparse

PROGRAM = "pylink report"

# Choices of --page.
PAGES = ("details", "raw", "source", "session")


def _split_items(text: str) -> list[str]:
    """Split the value of an option at its commas, as for options of a link."""
    return text.split(",")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    options = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Show what links cost: reports of --profile (.ncu-rep, of Nsight Compute, too) "
        "and of --profile-aprof. If there are several, the first is the baseline.",
    )
    options.add_argument("files", nargs="*", metavar="FILE", help="report to show")
    form = options.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print a line for each metric or action")
    form.add_argument("--json", action="store_true", help="print everything as one JSON object")
    form.add_argument("--html", metavar="OUT", help="write one self-contained page")
    form.add_argument("--plot", metavar="OUT", help="draw the plots to OUT.svg or OUT.png")
    form.add_argument(
        "--compare", action="store_true", help="show only what differs from the baseline"
    )
    form.add_argument("--fit", action="store_true", help="show only how the cost of routines grows")
    options.add_argument("--page", choices=PAGES, help="what to show (default: details)")
    options.add_argument(
        "--all", action="store_true", help="show all actions and sections, not only one screen"
    )
    options.add_argument(
        "--query-metrics", action="store_true", help="list the available metrics with descriptions"
    )
    options.add_argument("--instances", action="store_true", help="list the parts of each metric")
    options.add_argument(
        "--metrics",
        metavar="NAME,...",
        action="extend",
        type=_split_items,
        default=[],
        help="show only these metrics, as --page raw does; regex:EXPRESSION selects several",
    )
    options.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="color the output (default: auto, on a terminal)",
    )
    options.add_argument(
        "--export",
        metavar="OUT",
        help="write the report with the added sections; print nothing but what is asked for",
    )
    _add_section_options(options)
    return options


def _add_section_options(options: argparse.ArgumentParser) -> None:
    """Add the options that name sections and rules, or list them."""
    group = options.add_argument_group(
        "sections and rules", "Separate items with commas. What you name is added to the report."
    )
    for name, metavar, help_text in (
        (
            "section-folder",
            "DIR",
            "directory of section and rule files, which replace the stock files and yours",
        ),
        ("section-folder-recursive", "DIR", "like --section-folder, with all directories below"),
        ("section", "ID", "add these sections instead of the default set"),
        ("set", "NAME", "add the sections of these sets"),
        ("rule", "ID", "apply only these rules"),
    ):
        group.add_argument(
            f"--{name}",
            metavar=metavar,
            action="extend",
            type=_split_items,
            default=[],
            help=help_text,
        )
    failing = "including those that fail to load"
    group.add_argument(
        "--apply-rules", action="store_true", help="apply all rules to the sections of the report"
    )
    group.add_argument("--list-sections", action="store_true", help=f"list sections, {failing}")
    group.add_argument("--list-sets", action="store_true", help="list sets with their sections")
    group.add_argument("--list-rules", action="store_true", help=f"list rules, {failing}")
