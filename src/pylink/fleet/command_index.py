"""`pylink dedup index`: make an index of build trees, or bring one up to date."""

from __future__ import annotations

import argparse
import os
import sys

from pylink._native.cores import count_cores
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import printable, show
from pylink.files.reading import read_incoming
from pylink.fleet import arguments
from pylink.fleet.index import Index
from pylink.fleet.updates import update
from pylink.terminal.progress import Progress
from pylink.terminal.running import print_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# More threads do not read faster from memory, and a part (one thread's task) may need 0.2 GB.
MOST_THREADS = 4

_PROGRAM = "pylink dedup index"


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Index the sections of all device code in build trees: cubins, host objects, "
        "archives, fat binaries and shared libraries. A second run reads only what is new or has "
        "changed.",
        epilog="`pylink dedup ask INDEX` answers questions about the index, "
        "`pylink dedup compare` shows how two differ.",
    )
    options.add_argument(
        "directories",
        nargs="*",
        metavar="DIR",
        help="build tree (default: those already in the index)",
    )
    options.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="INDEX",
        help="directory of the index, created if missing",
    )
    options.add_argument(
        "--targets",
        metavar="FILE",
        help="file that says which files each target has: .ninja, .json, or rules of make. Later "
        "runs read it again. An empty name returns to targets by directory",
    )
    options.add_argument(
        "--changed-from",
        metavar="FILE",
        help="check only the files that FILE lists, and all files in directories that it lists: "
        "one name per line, or each ended by NUL; - is standard input. Names are relative to the "
        "working directory",
    )
    arguments.add_scheduler(options)
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the status is 1 after an error, 2 if argparse refuses arguments, else 0."""
    return arguments.run(parser(), argv, _main)


def _main(parsed: argparse.Namespace) -> int:
    roots = [os.fsencode(os.path.abspath(name)) for name in parsed.directories]
    for name in parsed.directories:
        if not os.path.isdir(name):
            raise ValueError(f"{name}: not a directory")
    index = Index.open_or_make(parsed.output)
    names = None if parsed.changed_from is None else _read_names(parsed.changed_from)
    targets = os.path.abspath(parsed.targets) if parsed.targets else parsed.targets
    runner = arguments.make_engine(parsed.scheduler, min(MOST_THREADS, count_cores()))
    try:
        with Progress("indexing") as progress:
            done = update(index, roots, runner, progress.set_amount, targets, names)
    finally:
        runner.close()
    for directory, reason in done.closed:
        print_note(_PROGRAM, f"{printable(directory)}: {reason}")
    if done.outside:
        print_note(
            _PROGRAM,
            f"{done.outside} of {len(names or ())} names are in no directory that is indexed",
        )
    show(
        f"{done.files} files: {done.read} read ({done.read_bytes} bytes), {done.gone} gone, "
        f"{done.files - done.read} as they were\n"
    )
    return 0


def _read_names(file: str) -> list[bytes]:
    """Read the names in a file; `-` is standard input. ValueError if it cannot be read.

    NULs separate them if there is one, as in the output of `find -print0`, else line feeds do.
    """
    if file == "-" and sys.stdin is None:
        raise ValueError("-: standard input is shut")
    try:
        data = sys.stdin.buffer.read() if file == "-" else read_incoming(file)
    except OSError as error:
        raise ValueError(f"{file}: {reason_of(error)}") from error
    end = b"\0" if b"\0" in data else b"\n"
    return [name for name in data.split(end) if name]
