"""`pylink remarks`: show, count or convert the remarks of a file."""

from __future__ import annotations

import argparse
from collections import Counter

from pylink.diagnostics.stream import printable, show
from pylink.remarks.container import LLVM_22, VERSIONS
from pylink.remarks.files import FORMATS, YAML, read_remarks, write_remarks
from pylink.remarks.record import TAGS, MalformedRemarks
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.remarks.record import Remark


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink remarks",
        description="Convert a file of remarks, as LLVM's tools and --pass-remarks-output write it,"
        " or count what is in it. The format of FILE is detected.",
    )
    options.add_argument("file", metavar="FILE", help="YAML, or a bitstream of LLVM 19 or 22")
    options.add_argument(
        "-o",
        dest="output",
        default="-",
        metavar="OUT",
        help="file to write (default: - for stdout)",
    )
    options.add_argument("--format", choices=FORMATS, default=YAML, help="format of OUT")
    options.add_argument(
        "--bitstream-version",
        type=int,
        choices=VERSIONS,
        default=LLVM_22,
        help="container of a bitstream: 0 for LLVM 19, 1 for LLVM 22 (default: 1)",
    )
    options.add_argument(
        "--count", action="store_true", help="print only a count for each pass, kind and name"
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    It is 0, 2 for wrong arguments, or 1 after a message about a file that cannot be read or
    written, or about a missing package.
    """
    return run(parser(), argv, _main, (MalformedRemarks,))


def _main(options: argparse.Namespace) -> int:
    remarks = read_remarks(options.file)
    if options.count:
        show(count(remarks))
        return 0
    try:
        write_remarks(
            options.output, remarks, format=options.format, version=options.bitstream_version
        )
    except OSError as error:
        # An error of a write does not name the file.
        if error.filename is None and options.output != "-":
            error.filename = options.output
        raise
    return 0


def count(remarks: Iterable[Remark]) -> str:
    """Return the lines of --count, such as `3 dce Passed FunctionRemoved`, then the total."""
    counts = Counter((remark.pass_name, TAGS[remark.kind], remark.name) for remark in remarks)
    lines = [f"{number:>10} {' '.join(key)}" for key, number in sorted(counts.items())]
    lines.append(f"{counts.total():>10} in all")
    return "".join(f"{printable(line)}\n" for line in lines)
