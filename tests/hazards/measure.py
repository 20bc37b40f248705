"""Count the findings in code of ptxas and nvlink, which should have none.

    PYTHONPATH=tests python -m hazards.measure [--archs 80,100] [--programs N] [FILE ...]

Compiles generated programs, links each with nvlink, and takes what the toolkit's device libraries
have. FILE is anything with cubins: a library, a wheel, an archive. Each distinct code of a function
counts once. A table shows, for each architecture, functions, instructions, functions that cannot be
followed or are too long, and findings by kind. Stalls stand apart: each says that two instructions
are closer than any pair that the table was learnt from, which may still be far enough. The exit
status is 1 if there is any other finding, or code that cannot be followed. `make hazards` runs it.
"""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
import random
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from emulator.errors import BadImage
from helpers import oracle, programs

from hazards import check, cubins, flow, sass, tables
from hazards.cubins import Function
from hazards.errors import Unfollowed
from hazards.words import SIZE
from pylink.inspect import containers

ARCHS = ("75", "80", "86", "89", "90a", "100", "103", "110", "120")
KINDS = ("read", "overwrite", "source", "fence", "call", "wait", "stall")
LONGEST = 40_000  # instructions of a function: the time grows with the square of them
AT_ONCE = 400  # functions that nvdisasm decodes together
SHOWN = 10


@dataclass
class Measured:
    """What the code of one architecture came to."""

    arch: str
    functions: int = 0
    instructions: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    unfollowed: list[str] = field(default_factory=list)
    long: int = 0  # functions that were left out for their length
    shown: list[str] = field(default_factory=list)

    def row(self) -> str:
        counts = "".join(f"{self.findings[kind]:>10}" for kind in KINDS)
        followed = (
            f"{self.functions:>10}{self.instructions:>14}{len(self.unfollowed):>12}{self.long:>10}"
        )
        return f"sm_{self.arch:<6}{followed}{counts}"


def generated(arch: str, count: int) -> Iterator[bytes]:
    """Cubins of the first generated programs, and what nvlink makes of each program."""
    for seed in range(count):
        images = [
            oracle.compile(module.source, arch, module.flags, name=module.name)
            for module in programs.generate(seed).modules
        ]
        yield from images
        linked = oracle.link(images, arch, ["-r"] if seed % 2 else [])
        if linked.image is not None:
            yield linked.image


def inside(path: Path) -> Iterator[bytes]:
    """The cubins in a file; a wheel's files are looked through."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            files = [(name, wheel.read(name)) for name in wheel.namelist()]
    else:
        files = [(path.name, path.read_bytes())]
    for name, data in files:
        if not containers.is_known(data[:8]):
            continue
        for part in containers.parts(name, data):
            if part.kind == "cubin" and part.data:
                yield part.data


def libraries() -> list[Path]:
    """The libraries of device code that the toolkit has."""
    folder = oracle.device_runtime()
    return [folder / "libcudadevrt.a", *folder.parent.parent.glob("nvshmem/lib/*_device.a")]


def distinct(images: Iterable[bytes], arch: str) -> Iterator[Function]:
    """The functions of cubins of an architecture, none twice."""
    seen = set()
    for image in images:
        try:
            file = cubins.read(image)
        except BadImage:
            continue
        if file.arch != arch.rstrip("af"):
            continue
        for part in file.functions:
            if part.code and part.code not in seen:
                seen.add(part.code)
                yield part


def measure(arch: str, count: int, files: list[Path], most: int, longest: int) -> Measured:
    """Check code of one architecture: generated programs, and `most` functions of each file.

    Functions of more than `longest` instructions are counted and left out.
    """
    found = Measured(arch)
    table, decoder = tables.load(arch.rstrip("af")), sass.decoder(arch.rstrip("af"))

    def functions() -> Iterator[Function]:
        yield from distinct(generated(arch, count), arch)
        for path in files:
            parts = list(distinct(inside(path), arch))
            random.Random(1).shuffle(parts)
            yield from parts[:most]

    batch: list[Function] = []

    def check_batch() -> None:
        decoder.learn(part.code for part in batch)
        for part in batch:
            try:
                built = flow.build(part, decoder)
                hazards = list(check.function(built, table))
            except Unfollowed as error:
                found.unfollowed.append(str(error))
                continue
            found.functions += 1
            found.instructions += len(built.steps)
            found.findings.update(finding.kind for finding in hazards)
            told = [str(finding) for finding in hazards if finding.kind != "stall"]
            found.shown += told[: SHOWN - len(found.shown)]
        batch.clear()

    seen = set()
    for part in functions():
        if part.code in seen:
            continue
        seen.add(part.code)
        if len(part.code) > SIZE * longest:
            found.long += 1
            continue
        batch.append(part)
        if len(batch) == AT_ONCE:
            check_batch()
    check_batch()
    return found


def parser() -> argparse.ArgumentParser:
    """The options of this command."""
    found = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    found.add_argument("files", nargs="*", type=Path, help="more files with cubins")
    found.add_argument("--archs", default=",".join(ARCHS))
    found.add_argument("--programs", type=int, default=150, help="generated programs")
    found.add_argument("--functions", type=int, default=10_000, help="of each file at most")
    found.add_argument("--longest", type=int, default=LONGEST, help="instructions of a function")
    found.add_argument("--jobs", type=int, default=2)
    return found


def main() -> int:
    arguments = parser().parse_args()
    files = [*libraries(), *arguments.files]
    work = partial(
        measure,
        count=arguments.programs,
        files=files,
        most=arguments.functions,
        longest=arguments.longest,
    )
    archs = [arch for arch in arguments.archs.split(",") if tables.known(arch.rstrip("af"))]
    total: Counter[str] = Counter()
    functions = unfollowed = long = 0
    print(f"{'':9}{'functions':>10}{'instructions':>14}{'unfollowed':>12}{'too long':>10}", end="")
    print("".join(f"{kind:>10}" for kind in KINDS))
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for found in pool.map(work, archs):
            print(found.row(), flush=True)
            for line in (*found.unfollowed[:SHOWN], *found.shown):
                print(f"    {line}")
            total += found.findings
            functions += found.functions
            unfollowed += len(found.unfollowed)
            long += found.long
    stalls = total.pop("stall", 0)
    print(
        f"{total.total()} findings in {functions} functions; {unfollowed} not followed, "
        f"{long} too long; "
        f"{stalls} pairs of instructions are closer than any that the tables were learnt from"
    )
    return 1 if total or unfollowed else 0


if __name__ == "__main__":
    raise SystemExit(main())
