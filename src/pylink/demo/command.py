"""`pylink demo`: shows pylink's work with the cubins of a small program.

The cubins and the output of nvlink 13.0.88 for them are in the package of a wheel, and in `demo` of
a checkout. Every time is measured by the run that prints it. Those of nvlink are absent if it is
not installed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

import pylink
from pylink.diagnostics.stream import printable, show
from pylink.inspect.compare import Ignore, differences
from pylink.inspect.image import Image
from pylink.packages.extras import MissingPackage, need
from pylink.subtools.process import run_attached
from pylink.subtools.programs import find_cuda_tool, find_own_program, tool_version
from pylink.subtools.runner import Command, run_all
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The places of the cubins in an installed package and in a checkout.
PACKAGE = Path(__file__).parent
CHECKOUT = Path(__file__).parents[3] / "demo"

ROUNDS = 15  # runs of each command, the fastest of which counts
# The most lines that are shown of the differences, and of the messages of the link with an error.
SHOWN_LINES = 4
# From this SM number on, links rewrite instructions, and pylink may choose other scoreboards (the
# barriers on which an instruction waits) than nvlink.
REWRITTEN = 100
# A cubin with functions that the others call; the link with an error omits it.
OMITTED_FILE = "random.cubin"


class DemoError(Exception):
    """The demo cannot go on; the text says why."""


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink demo",
        description="Link the cubins of a small program for two architectures, compare the results "
        "with nvlink's, measure the links, and show an error message and a profile.",
    )
    options.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        default="pylink-demo",
        help="directory for the results (default: pylink-demo)",
    )
    return options


def main(argv: Sequence[str]) -> int:
    """Run the command; return 1 if an output differs from nvlink's or a step fails, else 0.

    Return 2 for bad options.
    """
    return run(parser(), argv, _main, (DemoError, pylink.LinkError))


def _main(options: argparse.Namespace) -> int:
    results = Path(options.directory)
    data = PACKAGE if (PACKAGE / "cubins").is_dir() else CHECKOUT
    if not (data / "cubins").is_dir():
        raise DemoError(f"no cubins in {PACKAGE}: install the wheel of pylink-cuda again")
    results.mkdir(parents=True, exist_ok=True)
    directories = sorted(
        (data / "cubins").iterdir(), key=lambda directory: number_of(directory.name)
    )
    count = len(list(directories[0].glob("*.cubin")))
    _print_line(
        f"pylink {pylink.__version__}: a particle simulation, {count} cubins compiled apart"
    )
    equal = [
        _show_link(directory, data / "linked" / f"{directory.name}.cubin", results)
        for directory in directories
    ]
    _show_error(directories[0])
    show_next_commands(directories[0], results)
    return 0 if all(equal) else 1


def _print_line(text: str) -> None:
    """Print a line whose unprintable characters are escaped."""
    show(f"{printable(text)}\n")


def number_of(arch: str) -> int:
    """Return the number in the name of an architecture, such as 90 of sm_90a."""
    return int(arch.removeprefix("sm_").rstrip("af"))


def _own_command() -> list[str]:
    """Return the command that starts this pylink."""
    own_program = find_own_program()
    return [own_program] if own_program else [sys.executable, "-m", "pylink"]


def _show_link(directory: Path, expected: Path, results: Path) -> bool:
    """Link the cubins in a directory, whose name is their architecture, and print the result.

    Return whether pylink's output equals `expected`, an output of nvlink, in all that must agree.
    The outputs of pylink and, if it is installed, nvlink are written to `results`.
    """
    arch = directory.name
    cubins = [str(path) for path in sorted(directory.glob("*.cubin"))]
    output, nvlink_output = results / f"{arch}.cubin", results / f"{arch}.nvlink.cubin"
    # nvlink keeps every copy of Mercury sections, so the file to compare has them, too.
    commands = {
        "pylink": [*_own_command(), f"-arch={arch}", "--merc-dedup=off", *cubins, "-o", str(output)]
    }
    nvlink = find_cuda_tool("nvlink")
    if nvlink is not None:
        name = f"nvlink {tool_version(nvlink) or ''}".strip()
        commands[name] = [nvlink, f"-arch={arch}", *cubins, "-o", str(nvlink_output)]
    commands["starting Python"] = [sys.executable, "-I", "-S", "-c", "pass"]
    times = _best_times(list(commands.values()))
    start = time.perf_counter()
    result = pylink.link(cubins, arch=arch)
    link_times = [time.perf_counter() - start]
    for _ in range(ROUNDS):
        start = time.perf_counter()
        pylink.link(cubins, arch=arch)
        link_times.append(time.perf_counter() - start)

    rewritten = number_of(arch) >= REWRITTEN
    ignore = Ignore(tool_note=True, scoreboards=rewritten)
    image = output.read_bytes()
    different = differences(Image(image), Image(expected.read_bytes()), ignore)
    allowed = "the linker's name and scoreboard bits" if rewritten else "the linker's name"
    verdict = "differs from nvlink's" if different else f"as nvlink writes it, except for {allowed}"
    _print_line(f"{arch}: {output}, {len(image):,} bytes, {verdict}")
    for difference in different[:SHOWN_LINES]:
        _print_line(f"  {difference}")
    figures = [f"{name} {ms:.1f} ms" for name, ms in zip(commands, times, strict=True)]
    _print_line(f"  a command     {', '.join(figures)} (best of {ROUNDS})")
    _print_line(f"  from Python   pylink.link {min(link_times) * 1000:.1f} ms")
    saved = len(image) - len(result.image)
    if saved:
        _print_line(
            f"  duplicates    Mercury sections kept once: {saved:,} bytes saved (pylink dedup)"
        )
    return not different


def run_in_terminal(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a program that writes to this terminal; DemoError if it fails."""
    status = run_attached(argv, environment)
    if status:
        raise DemoError(f"`{shlex.join(argv)}` ended with status {status}")


def _best_times(commands: Sequence[Sequence[str]]) -> list[float]:
    """Return the milliseconds of the fastest of ROUNDS runs of each command.

    Each round runs all commands once, in order.
    """
    best = [float("inf")] * len(commands)
    for _ in range(ROUNDS):
        for number, command in enumerate(commands):
            start = time.perf_counter()
            run_in_terminal(command)
            best[number] = min(best[number], (time.perf_counter() - start) * 1000)
    return best


def _show_error(directory: Path) -> None:
    """Show the first lines of pylink's messages for a link without OMITTED_FILE."""
    names = [path.name for path in sorted(directory.glob("*.cubin")) if path.name != OMITTED_FILE]
    command = [*_own_command(), f"-arch={directory.name}", *names, "-o", os.devnull, "--notes=yes"]
    (done,) = run_all([Command(command, None, prints=True, directory=str(directory))], timeout=0)
    _print_line(f"without {OMITTED_FILE} it says:")
    for line in done.log.splitlines()[:SHOWN_LINES]:
        _print_line(f"  {line}")


def show_next_commands(directory: Path, results: Path) -> None:
    """Show what to run next; write a page with a link's profile if its packages are installed."""
    arch = directory.name
    _print_line("next:")
    _print_line(f"  pylink inspect {results / arch}.cubin")
    cubins = [str(path) for path in sorted(directory.glob("*.cubin"))]
    report, growth, page = (results / name for name in ("link.ncu-rep", "link.aprof", "link.html"))
    try:
        for package in ("google.protobuf", "jinja2", "matplotlib"):
            need(package)
    except MissingPackage as missing:
        _print_line(f"  a profile of the link: {missing}")
        return
    link = [*_own_command(), f"-arch={arch}", *cubins, "-o", str(results / "profiled.cubin")]
    link += [f"--profile={report}", f"--profile-aprof={growth}"]
    # Use the section files in the package, so that the demo writes no copies to the user's home.
    environment = {**os.environ, "PYLINK_DISABLE_SECTION_DEPLOYMENT": "1"}
    run_in_terminal(link, environment)
    view = [*_own_command(), "report", str(report), str(growth), "--html", str(page)]
    run_in_terminal(view, environment)
    _print_line(f"  open {page} in a browser: where the time of the link went")
