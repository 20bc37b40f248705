"""`pylink dedup`: what folding Mercury sections does for a set of cubins."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pylink.command.running import run
from pylink.command.tables import print_tables
from pylink.dedup import report
from pylink.dedup.analysis import analyse
from pylink.dedup.cubin import MalformedCubin
from pylink.dedup.objects import MercuryObject
from pylink.dedup.prefilter import PREFILTERS
from pylink.dedup.saving import saved_by_cubins
from pylink.dedup.stages import IDENTITIES
from pylink.diagnostics.stream import show
from pylink.facts.elf import EM_CUDA
from pylink.inputs.incoming import is_elf, read_incoming
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inspect.image import Image
from pylink.watch.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Rows of a table that a screen has room for.
TOP = 10


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink dedup",
        description="Show which cubins' Mercury sections (.nv.merc.*) are copies of another's, "
        "what blocks the others, and what finding out costs.",
        epilog="`pylink dedup index`, `ask` and `compare` do so for whole build trees.",
    )
    options.add_argument("files", nargs="+", metavar="FILE", help="cubin, or directory of cubins")
    form = options.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything as one JSON object")
    form.add_argument("--csv", action="store_true", help="a line for each object")
    options.add_argument(
        "--top", type=int, metavar="N", help=f"rows of the table of objects, {TOP} unless told"
    )
    options.add_argument(
        "--all", action="store_true", help="reasons in full, sections by family and work, too"
    )
    options.add_argument(
        "--prefilter", choices=PREFILTERS, default="xxh3", help="how pairs and twins are found"
    )
    options.add_argument(
        "--identity",
        choices=IDENTITIES,
        default="symbols",
        help="whether equal symbol numbers must be equal symbols (default), or bytes decide alone",
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 1 when an input cannot be read or the result not be written."""
    return run(parser(), argv, _main, (MalformedCubin,))


def _main(options: argparse.Namespace) -> int:
    cubins = [
        (str(path), bytes(read_incoming(path, wanted=is_elf))) for path in inputs(options.files)
    ]
    objects = [MercuryObject.from_cubin(data, name) for name, data in cubins]
    with Progress("comparing", len(objects)) as progress:
        analysis = analyse(
            objects,
            prefilter=options.prefilter,
            identity=options.identity,
            progress=progress.advance,
        )
    if any(candidate.reference is not None for candidate in analysis.candidates):
        analysis.saved_bytes = saved_by_cubins(cubins, newest(cubins))
    else:
        analysis.saved_bytes = 0
    if options.json:
        show(report.as_json(analysis))
    elif options.csv:
        show(report.as_csv(analysis))
    else:
        top = TOP if options.top is None else options.top
        print_tables(report.tables(analysis, top, everything=options.all))
        show(report.summary(analysis) + "\n")
        if not options.all:
            show("--all has sections by family, codes and what comparing took\n")
    return 0


def inputs(names: Sequence[str]) -> Iterator[Path]:
    """The files named, and the cubins in the directories named, in the order of their paths."""
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if is_cubin(file))
        else:
            yield path


def newest(cubins: Sequence[tuple[str, bytes]]) -> str:
    """The architecture that all of these run on, such as `sm_100`."""
    return f"sm_{max(Image(data).sm for _, data in cubins)}"


def is_cubin(path: Path) -> bool:
    """Whether a file in a directory begins as a cubin does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(20)
    return start[:4] == ELF_MAGIC and int.from_bytes(start[18:20], "little") == EM_CUDA


if __name__ == "__main__":
    sys.exit(main())
