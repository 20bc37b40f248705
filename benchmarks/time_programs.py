"""Times the device link of public CUDA programs: nvlink, pylink, and nvcc's device-link step.

    python benchmarks/time_programs.py --checkouts FOLDER [--only BitCrack] [--archs 90a,100]
    python benchmarks/time_programs.py --binary libnccl.so.2 --archs 90,100 --release 13.4

The programs are rows of benchmarks/time_programs.json, or of another `--table`. The user has their
repositories in FOLDER; nothing is fetched. A binary is a library or program that still contains its
relocatable device code, so nothing is compiled for it. docs/real-programs.md describes the table,
and docs/program-times.md the figures. Objects are compiled once, by `scripts/program_sources.py`.
`pylink.bench` links them in turn, compares the outputs, and takes the times. Needs the tools of
CUDA 13.0 (pip install '.[oracle]'), git, g++ and binutils.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(ROOT / name) for name in ("tests", "scripts")]

from helpers import oracle
from helpers.containers import differences
from helpers.hostlink import contents
from program_sources import (
    CUBIN,
    FLAVORS,
    IR,
    Program,
    commit_of,
    compile_all,
    find_places,
    read_table,
)

import pylink.bench
from pylink.bench.answers import is_different
from pylink.bench.commandline import BadLink, Link
from pylink.bench.contenders import API, CLI, COPY, NVJITLINK, NVLINK, SERVED, this_program
from pylink.bench.estimates import Estimate, median_of
from pylink.bench.processes import Launcher, Run, RunFailed
from pylink.bench.results import Results, median, to_csv

# The contenders whose times the table shows, and those that it compares with nvlink.
SHOWN = (NVLINK, NVJITLINK, CLI, SERVED, API)
COMPARED = (CLI, SERVED, API)
DIFFERS = "differs"  # in place of a ratio
RELOCATABLE = 1  # ET_REL, the e_type of a relocatable cubin
NVCC, STEP = "nvcc -dlink", "pylink dlink"


@dataclass
class Inputs:
    """The objects, archives and libraries of one link, with the paths that the linker gets.

    `libraries` is the number of libraries that `library_options` name.
    """

    name: str
    arch: str
    flavor: str
    objects: list[Path]
    archives: list[Path] = field(default_factory=list)
    library_options: list[str] = field(default_factory=list)
    libraries: int = 0

    @property
    def title(self) -> str:
        ways = "" if self.flavor in ("host", "plain") else f", {self.flavor}"
        return f"{self.name}{ways}"

    @property
    def count(self) -> str:
        """Numbers of objects, of archives and libraries, of members of archives: `12 + 2 (40)`."""
        archives = len(self.archives) + self.libraries
        members = sum(_members(path) for path in self.archives)
        inside = f" ({members:,})" if members else ""
        return f"{len(self.objects)} + {archives}{inside}"


def _members(archive: Path) -> int:
    """Return the number of files in an archive."""
    listed = subprocess.run(["ar", "t", archive], capture_output=True, text=True, check=True)
    return len(listed.stdout.splitlines())


def prepare(
    program: Program,
    places: dict[str, Path],
    arch: str,
    flavor: str,
    cache: Path,
    *,
    library_paths: Sequence[str],
) -> tuple[Inputs | None, list[str]]:
    """Compile a program; return what to link, and a line for each source that fails.

    There is nothing to link, None, if no source of an object could be compiled.
    """
    chosen = FLAVORS[flavor]
    objects, failures = compile_all(replace(program, members=()), places, chosen, arch, cache)
    if not objects:
        return None, failures
    folder = cache / "timed" / f"{program.name.replace(' ', '-')}-{arch}-{flavor}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    runtime = oracle.device_runtime()
    options = [f"-L{runtime}", *library_paths]
    options += [f"-l{name}" for name in (*program.libraries, "cudadevrt")]
    inputs = Inputs(program.name, arch, flavor, objects, [], options, len(program.libraries) + 1)
    if program.members:
        as_sources = replace(program, sources=program.members, members=())
        members, more = compile_all(as_sources, places, chosen, arch, cache)
        failures += more
        if chosen.kind == CUBIN:  # nvlink reads archives of host objects only
            inputs.objects += members
        elif members:
            archive = folder / "libprogram.a"
            subprocess.run(["ar", "crD", archive, *members], check=True)
            inputs.archives.append(archive)
    return inputs, failures


def extract(binary: Path, arch: str, cache: Path) -> Inputs | None:
    """Return relocatable cubins of a library or program for an architecture; None without them."""
    with binary.open("rb") as stream:
        contents_digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            contents_digest.update(block)
    folder = cache / "binaries" / f"{binary.name}-{arch}-{contents_digest.hexdigest()[:24]}"
    if not folder.is_dir():
        partial = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        argv = [this_program(), "inspect", "--arch", f"sm_{arch}", "--extract", str(partial)]
        argv.append(str(binary))
        if subprocess.run(argv, check=False, stdout=subprocess.DEVNULL).returncode:
            return None  # its message says why
        partial.rename(folder)
    cubins = [path for path in sorted(folder.iterdir()) if is_relocatable(path)]
    libraries = [f"-L{oracle.device_runtime()}", "-lcudadevrt"]
    return Inputs(binary.name, arch, "plain", cubins, [], libraries, 1) if cubins else None


def is_relocatable(path: Path) -> bool:
    """Return whether a file that was extracted is relocatable ELF, which only cubins are."""
    with path.open("rb") as stream:
        head = stream.read(18)
    return head[:4] == b"\x7fELF" and int.from_bytes(head[16:18], "little") == RELOCATABLE


def link_command(inputs: Inputs, output: Path) -> list[str]:
    """Return the command line of nvlink for a link, as nvcc writes it."""
    flavor = FLAVORS[inputs.flavor]
    names = [str(path) for path in (*inputs.objects, *inputs.archives)]
    return [
        oracle.toolchain().tool("nvlink"),
        f"-arch=sm_{inputs.arch}",
        *flavor.link_options,
        *names,
        *inputs.library_options,
        "-o",
        str(output),
    ]


def measure_link(inputs: Inputs, rounds: int, folder: Path) -> Results:
    """Let nvlink and pylink link in turn."""
    return pylink.bench.measure(
        link_command(inputs, folder / "linked.cubin"),
        rounds=rounds,
        growth=False,
        without=[COPY],
        folder=folder,
        label=f"{inputs.title}, sm_{inputs.arch}",
    )


def measure_step(
    inputs: Inputs, rounds: int, folder: Path
) -> tuple[list[tuple[Run, Run]], list[str]]:
    """Let `nvcc -dlink` and `pylink dlink` make the host object in turn.

    Returns a pair of runs for each round, and how the linked code of the last round differs.
    """
    home = oracle.toolchain().bin.parent
    options = [f"-arch=sm_{inputs.arch}", *map(str, (*inputs.objects, *inputs.archives))]
    options += [*inputs.library_options, "-o"]
    commands = {
        NVCC: [oracle.toolchain().tool("nvcc"), "-dlink", *options, str(folder / "nvcc.o")],
        STEP: [this_program(), "dlink", "--cuda", str(home), *options, str(folder / "linked.o")],
    }
    launcher = Launcher()
    try:
        pairs = []
        for turn in range(rounds + 1):
            order = list(commands) if turn % 2 == 0 else list(commands)[::-1]
            runs = {name: launcher.run(commands[name], folder) for name in order}
            pairs.append((runs[NVCC], runs[STEP]))
    finally:
        launcher.close()
    images = [contents(folder, name, ".nv_fatbin") for name in ("linked.o", "nvcc.o")]
    return pairs[1:], differences(*images)  # a first round loads inputs and programs


def ratio_text(estimate: Estimate) -> str:
    """Return a ratio with its interval, and `*` if that is not certain."""
    mark = "" if estimate.certain else " *"
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f}){mark}"


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds, with three digits, or all digits before the point."""
    value = seconds * 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def link_row(inputs: Inputs, results: Results, input_bytes: int, output_bytes: int) -> list[str]:
    """Return the row of a link in the table."""
    row = [inputs.title, f"sm_{inputs.arch}", inputs.count]
    row += [f"{input_bytes / 1e6:.2f}", f"{output_bytes / 1e6:.3f}"]
    for name in SHOWN:
        time = median(results, name)
        row.append(milliseconds(time.value) if time else "-")
    for name in COMPARED:
        ratios = results.ratios(NVLINK, name)
        if is_different(results.answers.get(name, "")):
            row.append(DIFFERS)  # how fast a wrong output is written says nothing
        else:
            row.append(ratio_text(median_of(ratios)) if ratios else "-")
    return row


def step_row(inputs: Inputs, pairs: Sequence[tuple[Run, Run]], *, differs: bool) -> list[str]:
    """Return the row of a device-link step in its table."""
    times = [median_of([run.seconds for run in runs]) for runs in zip(*pairs, strict=True)]
    ratio = median_of([nvcc.seconds / step.seconds for nvcc, step in pairs])
    row = [inputs.title, f"sm_{inputs.arch}", inputs.count]
    last_cell = DIFFERS if differs else ratio_text(ratio)
    return [*row, *(milliseconds(time.value) for time in times), last_cell]


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    print()
    for row in (columns, ["---"] * len(columns), *rows):
        print(f"| {' | '.join(row)} |")


PROGRAM_COLUMNS = ("program", "arch", "objects + archives (members)")
LINK_COLUMNS = (
    *PROGRAM_COLUMNS,
    *("inputs MB", "cubin MB"),
    *(f"{name} ms" for name in SHOWN),
    *(f"{NVLINK} / {name}" for name in COMPARED),
)
STEP_COLUMNS = (*PROGRAM_COLUMNS, f"{NVCC} ms", f"{STEP} ms", f"{NVCC} / {STEP}")


# Options that --binary does not allow, and those that --compile does not. Their defaults stand
# here, not in `parser`, so that `check` sees which of them were given.
FOR_PROGRAMS = (
    "checkouts",
    "table",
    "only",
    "flavors",
    "include",
    "library_path",
    "step",
    "compile",
)
FOR_TIMES = ("step", "rounds", "csv")
DEFAULT_FLAVOR, ROUNDS = "host", 15
TABLE = Path(__file__).with_suffix(".json")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    options.add_argument("--table", type=Path, help=f"default: {TABLE.name} beside this program")
    options.add_argument("--checkouts", type=Path, help="folder of the repositories")
    options.add_argument(
        "--binary", type=Path, action="append", default=[], help="library or program to measure"
    )
    options.add_argument("--release", default=oracle.DEFAULT, help="of the tools, such as 13.5")
    options.add_argument("--cache", type=Path, default=oracle.cache_root() / "programs")
    options.add_argument("--archs", default="90a", help="for rows that name none")
    options.add_argument("--flavors", help=f"of {', '.join(FLAVORS)} (default: {DEFAULT_FLAVOR})")
    options.add_argument("--include", type=Path, action="append", default=[])
    options.add_argument("--library-path", type=Path, action="append", default=[])
    options.add_argument("--only", help="parts of program names, with commas")
    options.add_argument("--rounds", type=int, help=f"default: {ROUNDS}")
    options.add_argument("--step", action="store_true", help="measure nvcc -dlink, too")
    options.add_argument("--compile", action="store_true", help="compile, and measure nothing")
    options.add_argument("--csv", type=Path, help="a folder for the results of pylink bench")
    return options


class Report:
    """The rows of both tables, printed at the end, and what was wrong.

    That is outputs that differ from nvlink's, and programs that could not be measured.
    """

    def __init__(self, rounds: int, csv: Path | None, *, with_step: bool) -> None:
        self.links: list[list[str]] = []
        self.steps: list[list[str]] = []
        self.wrong: list[str] = []
        self._rounds = rounds
        self._csv = csv
        self._with_step = with_step

    def measure(self, inputs: Inputs) -> None:
        """Measure one program; if it cannot be measured, the others still are."""
        label = f"{inputs.title} sm_{inputs.arch}"
        try:
            with tempfile.TemporaryDirectory() as directory:
                self._measure(inputs, label, Path(directory))
        except (BadLink, RunFailed, subprocess.CalledProcessError, OSError) as error:
            self.wrong.append(f"{label}: not measured: {error}")
            print(self.wrong[-1], file=sys.stderr)

    def _measure(self, inputs: Inputs, label: str, folder: Path) -> None:
        """Measure one program, with outputs in `folder`."""
        results = measure_link(inputs, self._rounds, folder)
        output = folder / "linked.cubin"
        subprocess.run(link_command(inputs, output), check=True)
        link = Link(link_command(inputs, output), str(folder))
        input_bytes = link.bytes_of(link.size)  # of archives, too, and of libraries of -l
        self.links.append(link_row(inputs, results, input_bytes, output.stat().st_size))
        print(" | ".join(self.links[-1]), file=sys.stderr)
        self.wrong += [
            f"{label}: {name} {answer}"
            for name, answer in results.answers.items()
            if name in COMPARED and is_different(answer)
        ]
        if self._csv:
            self._csv.mkdir(parents=True, exist_ok=True)
            (self._csv / f"{label.replace(' ', '-')}.csv").write_text(to_csv(results))
        if self._with_step and FLAVORS[inputs.flavor].kind not in (CUBIN, IR):
            pairs, different = measure_step(inputs, self._rounds, folder)
            self.steps.append(step_row(inputs, pairs, differs=bool(different)))
            print(" | ".join(self.steps[-1]), file=sys.stderr)
            self.wrong += [f"{label}: {STEP} {text}" for text in different[:3]]

    def print(self) -> None:
        """Print the tables, and what was wrong."""
        if self.links:
            print_table(LINK_COLUMNS, self.links)
        if self.steps:
            print_table(STEP_COLUMNS, self.steps)
        if self.wrong:
            print()
        for text in self.wrong:
            print(text)


def programs(arguments: argparse.Namespace) -> Iterator[Inputs]:
    """Compile the programs of the table one by one, and yield what to link."""
    cache, checkouts = arguments.cache.resolve(), arguments.checkouts.resolve()
    includes = tuple(f"-I{path.resolve()}" for path in arguments.include)
    library_paths = [f"-L{path.resolve()}" for path in arguments.library_path]
    parts = (arguments.only or "").split(",")
    for row in read_table(arguments.table or TABLE):
        if not any(part in row.name for part in parts):
            continue
        program = replace(row, options=row.options + includes)
        places = find_places(program, checkouts, cache)
        if isinstance(places, str):
            print(f"{program.name}: no {places} in {arguments.checkouts}", file=sys.stderr)
            continue
        print(f"{program.name}: commit {commit_of(program.repository, checkouts)}")
        archs = program.archs or arguments.archs.split(",")
        for arch, flavor in product(archs, (arguments.flavors or DEFAULT_FLAVOR).split(",")):
            inputs, failures = prepare(
                program, places, arch, flavor, cache, library_paths=library_paths
            )
            for text in failures:
                print(f"not compiled: {program.name} sm_{arch}: {text}", file=sys.stderr)
            if inputs is not None:
                yield inputs


def binaries(arguments: argparse.Namespace) -> Iterator[Inputs]:
    """Yield the relocatable cubins of each binary, by architecture."""
    for binary, arch in product(arguments.binary, arguments.archs.split(",")):
        inputs = extract(binary.resolve(), arch, arguments.cache.resolve())
        if inputs is None:
            print(f"{binary}: no relocatable cubin for sm_{arch}", file=sys.stderr)
        else:
            yield inputs


def check(options: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End with an error if options do not fit together."""
    if not arguments.checkouts and not arguments.binary:
        options.error("pass --checkouts or --binary")
    if arguments.binary:
        names = [name for name in FOR_PROGRAMS if getattr(arguments, name) not in (None, False, [])]
        if names:
            option = names[0].replace("_", "-")
            options.error(f"--{option} is for programs that are compiled, not for --binary")
    if arguments.compile:
        names = [name for name in FOR_TIMES if getattr(arguments, name) not in (None, False)]
        if names:
            options.error(f"--{names[0]} is for measurements, and --compile measures nothing")
    flavors = (arguments.flavors or DEFAULT_FLAVOR).split(",")
    if unknown := [name for name in flavors if name not in FLAVORS]:
        options.error(f"--flavors: no {unknown[0]!r} among {', '.join(FLAVORS)}")
    if arguments.step and all(FLAVORS[name].kind in (CUBIN, IR) for name in flavors):
        options.error(f"--step needs host objects: no --flavors {','.join(flavors)}")
    if arguments.rounds is not None and arguments.rounds < 1:
        options.error("--rounds: at least 1")


def main() -> int:
    options = parser()
    arguments = options.parse_args()
    check(options, arguments)
    rounds = ROUNDS if arguments.rounds is None else arguments.rounds
    report = Report(rounds, arguments.csv, with_step=arguments.step)
    with oracle.release(arguments.release):
        for inputs in binaries(arguments) if arguments.binary else programs(arguments):
            if not arguments.compile:
                report.measure(inputs)
    report.print()
    return 1 if report.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
