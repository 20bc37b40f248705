"""`pylink prune`: removes device code that need not be shipped from files."""

from __future__ import annotations

import argparse
import os

from pylink.diagnostics.stream import show
from pylink.files.atomic import has_contents, write_whole
from pylink.files.reading import MAX_SIZE, read_incoming
from pylink.prune.entries import MODES
from pylink.prune.errors import NotPruned
from pylink.prune.plan import PruneRequest, make_plan
from pylink.prune.rewriting import Rewriter
from pylink.prune.verification import verify
from pylink.size.diffshow import text_lines
from pylink.size.reductions import PRUNABLE
from pylink.size.walk import measure
from pylink.terminal.numbers import count_text
from pylink.terminal.running import WrongArguments, print_error, print_note, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR = 2  # exit status

_PROGRAM = "pylink prune"


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Write an object, archive or fat binary without device code that need not be "
        "shipped. The result is read again and compared before it is written.",
        epilog="Exit status: 0, or 2 if a file cannot be pruned; such a file does not change.",
    )
    options.add_argument("files", nargs="+", metavar="FILE", help="file to prune")
    output = options.add_mutually_exclusive_group(required=True)
    output.add_argument("-o", "--output-file", metavar="FILE", help="file to write")
    output.add_argument("--in-place", action="store_true", help="replace the files themselves")
    options.add_argument(
        "--arch",
        metavar="LIST",
        type=_split_list,
        default=(),
        help="keep code for these targets only, such as sm_80,sm_90a,compute_90",
    )
    options.add_argument(
        "--linked",
        metavar="FILE",
        default="",
        help="drop relocatable cubins that this finished device link contains; "
        "their PTX is kept, since drivers compile it for later GPUs",
    )
    options.add_argument(
        "--compress-mode",
        choices=MODES,
        default="",
        help="compress all entries again in this mode of nvcc; default, balance and size "
        "only change entries that become smaller",
    )
    options.add_argument(
        "--drop",
        metavar="RULES",
        type=_split_list,
        default=(),
        help=f"apply these rules of 'pylink size': {', '.join(PRUNABLE)}",
    )
    options.add_argument(
        "--experimental",
        action="store_true",
        help="also prune finished libraries and programs, which keep their length; "
        "run the result on a GPU of each target",
    )
    return options


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    It is 0, or 2 for wrong arguments or after a message on each file that could not be pruned. A
    file that cannot be read or written ends the command; later files stay as they are.
    """
    return run(parser(), argv, _main, error_status=ERROR)


def _main(arguments: argparse.Namespace) -> int:
    request = PruneRequest(
        arguments.arch,
        arguments.linked,
        arguments.compress_mode,
        arguments.drop,
        arguments.experimental,
    )
    if not (request.targets or request.linked or request.mode or request.rules):
        raise WrongArguments("nothing to do: use --arch, --linked, --compress-mode or --drop")
    if arguments.output_file is not None and len(arguments.files) > 1:
        raise WrongArguments("-o is for one file; use --in-place for several")
    status = 0
    for path in arguments.files:
        try:
            _prune(path, arguments.output_file, request)
        except NotPruned as error:
            print_error(_PROGRAM, str(error))
            status = ERROR
    return status


def _prune(path: str, output: str | None, request: PruneRequest) -> None:
    """Prune one file. Print sizes to standard output, and notes to standard error."""
    if output is not None and any(_is_same_file(output, name) for name in (path, request.linked)):
        raise NotPruned(f"{output}: the output would overwrite an input; use --in-place")
    data = read_incoming(path, limit=MAX_SIZE)
    plan = make_plan(path, data, request)
    rewritten = Rewriter(plan.changes).rewrite(data, path)
    compared_count = verify(data, rewritten, plan.changes.dropped, path)
    target = path if output is None else output
    if output is not None or rewritten != data:
        write_whole(target, rewritten)
        if not has_contents(target, rewritten):
            raise NotPruned(f"{target}: its contents differ from what was written")
    for note in plan.notes:
        print_note(_PROGRAM, f"{path}: {note}")
    show("\n".join([*text_lines(plan.sizes, measure([target]), (), 0), ""]))
    dropped_text = count_text(len(plan.changes.dropped), "entry")
    show(
        f"{path}: {len(data)} to {len(rewritten)} bytes; {dropped_text} dropped, "
        f"{compared_count} compared with the input\n"
    )


def _is_same_file(output: str, input_name: str) -> bool:
    try:
        return bool(input_name) and os.path.samefile(output, input_name)
    except OSError:
        return False
