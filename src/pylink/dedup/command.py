"""`pylink dedup`: what folding Mercury sections does for a set of cubins."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pylink.dedup import report
from pylink.dedup.analysis import analyse
from pylink.dedup.saving import saved_by_cubins
from pylink.diagnostics.stream import show
from pylink.facts.elf import EM_CUDA
from pylink.files.reading import read_incoming
from pylink.inputs.kinds import ELF_MAGIC
from pylink.inspect.containers import UnreadableFile, is_known, parts
from pylink.inspect.image import Image
from pylink.mercury.cubin import MalformedCubin
from pylink.mercury.objects import MercuryObject
from pylink.mercury.prefilter import PREFILTERS
from pylink.mercury.stages import IDENTITIES
from pylink.terminal.progress import Progress
from pylink.terminal.running import run
from pylink.terminal.tables import print_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Rows of a table that a screen has room for.
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
    options.add_argument("--top", type=int, metavar="N", help=f"objects to show (default: {TOP})")
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
    """Run the command; 0, or 1 when an input cannot be read or the result not be written."""
    return run(parser(), argv, _main, (MalformedCubin, UnreadableFile))


def _main(options: argparse.Namespace) -> int:
    cubins = [cubin for path in inputs(options.files) for cubin in inside(path)]
    if options.arch is not None:
        wanted = re.sub(r"\D", "", options.arch)
        cubins = [(name, data) for name, data in cubins if str(Image(data).sm) == wanted]
    if not cubins:
        raise UnreadableFile(_without_cubins(options.files[0], options.arch))
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


def _without_cubins(name: str, arch: str | None) -> str:
    wanted = f" for {arch}" if arch is not None else ""
    if Path(name).is_dir():
        return (
            f"{name}: there is no cubin file{wanted} in it; of a directory only cubins are read, "
            "so name objects, archives and libraries themselves"
        )
    return f"{name}: there is no cubin{wanted} in it"


def inputs(names: Sequence[str]) -> Iterator[Path]:
    """The files named, and the cubins in the directories named, in the order of their paths."""
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if is_cubin(file))
        else:
            yield path


def inside(path: Path) -> Iterator[tuple[str, bytes]]:
    """The cubins in a file of any kind that `pylink inspect` opens, with their names."""
    for part in parts(str(path), bytes(read_incoming(path, wanted=is_known))):
        if part.kind == "cubin":
            yield f"{part.name} (sm_{part.arch})" if part.arch else part.name, part.data


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
