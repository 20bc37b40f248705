"""`pylink dedup`: shows the effect of folding Mercury sections in a set of cubins."""

from __future__ import annotations

import argparse
import sys

from pylink.dedup import formats
from pylink.dedup.files import study
from pylink.diagnostics.stream import show
from pylink.inspect.containers import UnreadableFile
from pylink.mercury.cubin import MalformedCubin
from pylink.mercury.prefilter import PREFILTERS
from pylink.mercury.stages import IDENTITIES
from pylink.terminal.arguments import natural_number
from pylink.terminal.progress import Progress
from pylink.terminal.running import run
from pylink.terminal.tables import print_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Number of objects in the table without --top: so many fit on a screen.
TOP = 10


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink dedup",
        description="Show which cubins have duplicate Mercury sections (.nv.merc.*), what keeps "
        "the others from being folded, and the cost of the analysis.",
        epilog="`pylink dedup index`, `ask` and `compare` analyze whole build trees.",
    )
    options.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="cubin, file that contains cubins, or directory of cubins",
    )
    options.add_argument(
        "--arch", metavar="ARCH", help="analyze only cubins for this architecture, such as sm_100"
    )
    form = options.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as one JSON object")
    form.add_argument("--csv", action="store_true", help="print a line for each object")
    options.add_argument(
        "--top", type=natural_number, metavar="N", help=f"objects to show (default: {TOP})"
    )
    options.add_argument(
        "--all",
        action="store_true",
        help="also show all reasons, sections by family, and the work done",
    )
    options.add_argument(
        "--prefilter",
        choices=PREFILTERS,
        default="xxh3",
        help="how pairs and twins are found (default: xxh3)",
    )
    options.add_argument(
        "--identity",
        choices=IDENTITIES,
        default="symbols",
        help="what must be identical: symbols and bytes (default: symbols), or bytes only",
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the status is 1 if reading or writing fails, 2 for bad arguments, else 0."""
    return run(parser(), argv, _main, (MalformedCubin, UnreadableFile))


def _main(options: argparse.Namespace) -> int:
    with Progress("comparing") as progress:
        analysis = study(
            options.files,
            arch=options.arch,
            prefilter=options.prefilter,
            identity=options.identity,
            progress=progress.set_amount,
        )
    if options.json:
        show(formats.as_json(analysis))
    elif options.csv:
        show(formats.as_csv(analysis))
    else:
        top = TOP if options.top is None else options.top
        print_tables(formats.tables(analysis, top, everything=options.all))
        show(analysis.summary + "\n")
        if not options.all:
            show("--all also shows sections by family, codes, and the work of comparing\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
