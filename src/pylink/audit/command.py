"""The command `pylink audit`, which checks that a program will find its kernels."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

from pylink.audit.findings import Auditor, report_launchers
from pylink.audit.formats import document, file_lines, unread_lines
from pylink.audit.launchers import NotAnObject, find_launchers
from pylink.audit.linkedfile import NotLinked
from pylink.audit.process import Loader, Plugin, is_object
from pylink.audit.search import Finder
from pylink.audit.targets import sm_number
from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.policy import SUPPRESSED, Policy
from pylink.diagnostics.severity import DISCRETIONARY, NOTE
from pylink.diagnostics.sink import Sink
from pylink.diagnostics.stream import is_terminal, show
from pylink.files.atomic import WholeFile
from pylink.files.reading import read_incoming
from pylink.renderers.presentation import Presentation, terminal_columns
from pylink.renderers.sarif_document import SarifDocument
from pylink.renderers.text import TextRenderer
from pylink.terminal.numbers import count_text
from pylink.terminal.running import WrongArguments, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

GOOD, FOUND, ERROR = 0, 1, 2  # exit statuses


class _Unreadable(Exception):
    """A named file that cannot be read; the text says which and why."""


class _AddPlugin(argparse.Action):
    """Collects --plugin and --plugin-global in one list, in their order."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        plugins = [*namespace.plugins, Plugin(str(values), option_string == "--plugin-global")]
        namespace.plugins = plugins


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink audit",
        description="Check, from files alone, that each kernel of a program, its libraries and "
        "plugins will be registered, and that host functions of objects launch the kernels of "
        "their own library. Nothing is loaded or run.",
        epilog="Exit status: 0 without errors, 1 with errors (with -Werror: or warnings), 2 if a "
        "named file cannot be read.",
    )
    options.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="program or shared library to check with all that it needs; objects and archives to "
        "check for functions that launch kernels",
    )
    options.add_argument(
        "--plugin",
        metavar="FILE",
        dest="plugins",
        action=_AddPlugin,
        default=[],
        help="library that the program opens with RTLD_LOCAL, such as a Python extension; "
        "repeatable, in this order",
    )
    options.add_argument(
        "--plugin-global",
        metavar="FILE",
        dest="plugins",
        action=_AddPlugin,
        help="library that the program opens with RTLD_GLOBAL",
    )
    options.add_argument(
        "-L",
        metavar="DIR",
        action="append",
        default=[],
        dest="directories",
        help="directory to look for libraries in, as in LD_LIBRARY_PATH; repeatable",
    )
    options.add_argument(
        "--gpu",
        metavar="N",
        type=_read_gpu,
        help="warn of files without code for this GPU: sm_90, 9.0",
    )
    options.add_argument(
        "--system",
        action="store_true",
        help="also read libraries of the system, and wherever RPATH and RUNPATH lead",
    )
    options.add_argument(
        "--diag-suppress",
        metavar="LIST",
        type=_read_kinds,
        default=(),
        help="do not report these findings: numbers or names, separated by commas",
    )
    options.add_argument("-Werror", action="store_true", help="treat warnings as errors")
    options.add_argument("--json", action="store_true", help="print everything as one JSON object")
    options.add_argument(
        "--sarif-output", metavar="FILE", help="also write the findings to a SARIF 2.1.0 file"
    )
    return options


def _read_gpu(text: str) -> int:
    """Return the SM number that an argument names; ArgumentTypeError for any other text."""
    try:
        return sm_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _read_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds of diagnostics that an argument lists by name or number.

    ArgumentTypeError for any other text.
    """
    name_of = {str(row[0]): name for name, row in KINDS.items()}
    kinds = []
    for word in text.split(","):
        name = name_of.get(word, word)
        if name not in KINDS:
            raise argparse.ArgumentTypeError(f"'{word}': no such finding")
        kinds.append(name)
    return tuple(kinds)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status.

    It is 1 if there are findings that are errors, 2 if a named file could not be read or arguments
    are wrong, else 0.
    """
    return run(parser(), argv, _main, (_Unreadable,), error_status=ERROR, intermixed=True)


def _main(arguments: argparse.Namespace) -> int:
    """Read the files of the process, report what the rules find, and return the exit status."""
    if not arguments.files and not arguments.plugins:
        raise WrongArguments("nothing to check: name a program, a library or objects")
    objects = [path for path in arguments.files if is_object(path)]  # also archives of these
    linked = [path for path in arguments.files if path not in objects]
    if len(linked) > 1:
        raise WrongArguments(
            f"'{linked[1]}': name one program; libraries that it needs are found (-L), and those "
            "that it opens are named with --plugin"
        )
    named_paths = [*linked, *(plugin.path for plugin in arguments.plugins)]
    finder = Finder(named_paths, arguments.directories, is_system=arguments.system)
    loader = Loader(finder)
    _load_files(loader, linked, arguments.plugins)
    process = loader.process
    policy = Policy(
        warnings_as_errors=arguments.Werror, threshold=NOTE, as_nvlink=False, numbers=False
    )
    for kind in arguments.diag_suppress:
        policy.assign(kind, SUPPRESSED)
    with ExitStack() as stack:
        sink = Sink(policy=policy)
        if arguments.sarif_output is not None:
            file = WholeFile(arguments.sarif_output)
            stack.callback(file.discard)
            subject = (linked or named_paths or objects)[0]
            sink.renderers.append(SarifDocument(file, subject=subject))
        Auditor(process, sink).report(gpu=arguments.gpu)
        for path in objects:
            try:
                report_launchers(find_launchers(path, read_incoming(path, pipes=False)), sink)
            except NotAnObject as error:
                raise _Unreadable(f"{path}: {error}") from error
        status = FOUND if sink.errors else GOOD
        if arguments.json:
            show(document(process, finder, sink.diagnostics, status))
        else:
            if named_paths:
                show("\n".join([*file_lines(process), ""]))
            lines = unread_lines(process, finder)
            if lines:
                show("\n".join([*lines, ""]))
            _show_findings(sink)
        sink.close()
    return status


def _load_files(loader: Loader, linked: Sequence[str], plugins: Sequence[Plugin]) -> None:
    """Read the named files in the order of loading; _Unreadable if one cannot be loaded."""
    path = ""
    try:
        for path in linked:
            loader.start(path)
        for plugin in plugins:
            path = plugin.path
            loader.load(path, is_global=plugin.is_global)
    except NotLinked as error:
        raise _Unreadable(f"{path}: {error}") from error


def _show_findings(sink: Sink) -> None:
    """Print the findings, errors first, then the numbers of errors and of warnings."""
    width = terminal_columns(sys.stdout) if is_terminal(sys.stdout) else 0
    presentation = Presentation(width=width, summary=False, context=False)
    text = TextRenderer(sys.stdout, presentation)
    for record in sorted(sink.diagnostics, key=lambda record: -record.level):
        text.emit(record)
    errors = sum(record.level >= DISCRETIONARY for record in sink.diagnostics)
    warnings = sink.warnings
    show(f"{count_text(errors, 'error')}, {count_text(warnings, 'warning')}\n")
