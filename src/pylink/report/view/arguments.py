"""The arguments of `pylink report`."""

from __future__ import annotations

import argparse

PAGES = ("details", "raw", "source", "session")


def _items(text: str) -> list[str]:
    """A list as the link takes it: items between commas."""
    return text.split(",")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink report",
        description="Show what links cost: reports of --profile (.ncu-rep, of Nsight Compute, too) "
        "and of --profile-aprof. Of several reports the first is the baseline.",
    )
    options.add_argument("files", nargs="*", metavar="FILE")
    form = options.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="a line per metric, or per action")
    form.add_argument("--json", action="store_true", help="everything as one JSON object")
    form.add_argument("--html", metavar="OUT", help="write one self-contained page")
    form.add_argument("--plot", metavar="OUT", help="draw the plots to OUT.svg or OUT.png")
    form.add_argument("--compare", action="store_true", help="only what differs from the baseline")
    form.add_argument("--fit", action="store_true", help="only how the cost of routines grows")
    options.add_argument("--page", choices=PAGES, default="details")
    options.add_argument(
        "--all", action="store_true", help="every action and section, not one screen of them"
    )
    options.add_argument(
        "--query-metrics", action="store_true", help="what there is to measure of a link, in words"
    )
    options.add_argument("--instances", action="store_true", help="list the parts of each metric")
    options.add_argument(
        "--metrics",
        metavar="NAME,...",
        action="extend",
        type=_items,
        default=[],
        help="show these metrics alone, as --page raw does; regex:EXPRESSION for several",
    )
    options.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    options.add_argument("--export", metavar="OUT", help="write the report with what was added")
    found = options.add_argument_group(
        "sections and rules", "Lists stand between commas. Naming any puts them into the report."
    )
    for name, metavar, words in (
        ("section-folder", "DIR", "where the files are, in place of the stock ones and your own"),
        ("section-folder-recursive", "DIR", "the same, with the directories below"),
        ("section", "ID", "these sections, in place of the default set"),
        ("set", "NAME", "the sections of these sets"),
        ("rule", "ID", "apply these rules alone"),
    ):
        found.add_argument(
            f"--{name}", metavar=metavar, action="extend", type=_items, default=[], help=words
        )
    found.add_argument(
        "--apply-rules", action="store_true", help="apply all rules to the sections of the report"
    )
    found.add_argument("--list-sections", action="store_true", help="with those that do not load")
    found.add_argument("--list-sets", action="store_true", help="with their sections")
    found.add_argument("--list-rules", action="store_true", help="with those that do not load")
    return options
