"""Compiles PTX to cubins, by ptxas with the arguments that nvlink gives its own compiler."""

from __future__ import annotations

import shlex

from pylink.subtools.messages import report_messages
from pylink.subtools.programs import find_ptxas, tool_release
from pylink.subtools.runner import Command, run_all
from pylink.subtools.toolnote import remove_file_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.options.model import Options
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

DEFAULT_TIMEOUT = 3600  # seconds

# Options that are not passed to ptxas with these default values: it would record them in the cubin.
DEFAULT_VALUES = (("-split-compile", 1), ("-Ofc", "0"))

# Greatest -maxrregcount. nvlink refuses a number with more digits if there is something to compile.
MAX_REGISTERS = 999

# Options that pylink sets itself: flags, and settings with a value. They are removed from the
# options of a fat binary's entry.
OWN_FLAGS = frozenset({"-c", "--compile-only"})
OWN_SETTINGS = frozenset(
    ["-o", "--output-file", "-optf", "--options-file", "-arch", "--gpu-name", "-m", "--machine"]
)


class CompileRequest:
    """PTX to compile: `data` for `arch`; diagnostics use `name`, or `source` if it is empty.

    `source`, `name` and `output` are cells of the row in the table of -time. `options` is the text
    of ptxas options in a fat binary's entry. If `relocatable` is False, the PTX is compiled as a
    whole program. `optimized` marks a result of LTO: nvlink writes its row even if the run fails.
    """

    __slots__ = ("arch", "data", "name", "optimized", "options", "output", "relocatable", "source")

    def __init__(
        self,
        source: str,
        name: str,
        output: str,
        data: bytes,
        arch: str,
        *,
        options: str = "",
        relocatable: bool = True,
        optimized: bool = False,
    ) -> None:
        self.source = source
        self.name = name
        self.output = output
        self.data = data
        self.arch = arch
        self.options = options
        self.relocatable = relocatable
        self.optimized = optimized


def compile_ptx(
    requests: Sequence[CompileRequest],
    job: Job,
    sink: Sink,
    timing: CsvTiming,
    tool: str | None = None,
) -> list[bytes]:
    """Compile the requests, several at a time, and return the cubins; LinkError if one fails.

    `tool` is the path of the ptxas to start (default: the one that `find_ptxas` returns). Rows of
    -time come in the order of the requests, up to the first that failed, whose own row is only
    written if it is `optimized`.
    """
    options = job.options
    if (options.maxrregcount or 0) > MAX_REGISTERS:
        sink.fatal("invalid-argument", option="-maxrregcount")
    tool = tool or find_ptxas(options)
    if tool is None:
        sink.fatal("ptxas-missing", file=requests[0].name or requests[0].source)
    job.plan.check_input(tool, sink)
    _report_other_release(tool, options, requests[0], sink)
    commands = [
        # ptxas reports an error for padding after the text.
        Command([tool, *ptxas_arguments(request, options)], request.data.rstrip(b"\0"))
        for request in requests
    ]
    outcomes = run_all(commands, timeout=time_limit(options))
    failed = None
    for request, outcome in zip(requests, outcomes, strict=True):
        name = request.name or request.source
        report_messages(outcome, name, sink)
        if failed is None and (outcome.failure is None or request.optimized):
            write_row(timing, "ptxas", request, outcome.elapsed, sink)
        if outcome.failure is not None:
            failed = failed or (name, outcome.failure)
    if failed is not None:
        name, failure = failed
        sink.fatal("tool-failed", file=name, tool=tool, failure=failure)
    return [remove_file_names(outcome.data, outcome.input, outcome.output) for outcome in outcomes]


def _report_other_release(tool: str, options: Options, request: CompileRequest, sink: Sink) -> None:
    """Report it if `tool` is not of the release that the link follows."""
    if options.follows is None or not sink.is_enabled("other-compiler"):
        return
    release = tool_release(tool)
    if release is not None and release != options.follows:
        name = request.name or request.source
        sink.report(
            "other-compiler", file=name, tool=tool, compiler=release, release=options.follows
        )


def time_limit(options: Options) -> int:
    """Return the seconds that a compiler may run, 0 for no limit."""
    return DEFAULT_TIMEOUT if options.tool_timeout is None else options.tool_timeout


def ptxas_arguments(request: CompileRequest, options: Options) -> list[str]:
    """Return the arguments of ptxas, except for its files.

    ptxas uses the last of two values, so options of the command line come after an entry's options.
    """
    argv = ["-arch", request.arch, "-m", "64"]
    if request.relocatable:
        argv.append("-c")
    argv += entry_options(request.options)
    if options.debug and not options.suppress_debug_info:
        argv.append("-g")
    for flag, value in (
        ("-maxrregcount", options.maxrregcount),
        ("-split-compile", options.split_compile),
        ("-Ofc", options.Ofast_compile),
    ):
        if value is not None and (flag, value) not in DEFAULT_VALUES:
            argv += [flag, str(value)]
    if options.device_stack_protector is not None:
        argv += ["-device-stack-protector", "true" if options.device_stack_protector else "false"]
    return argv + split_arguments(options.Xptxas)


def entry_options(text: str) -> list[str]:
    """Return the options of a fat binary's entry, without those that pylink sets itself."""
    options = []
    skip = False
    for word in split_arguments([text]):
        name, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif name in OWN_SETTINGS:
            skip = not equals
        elif word not in OWN_FLAGS:
            options.append(word)
    return options


def split_arguments(items: Sequence[str]) -> list[str]:
    """Split items into arguments, as a shell would; an item may contain several."""
    pieces: list[str] = []
    for item in items:
        try:
            pieces += shlex.split(item)
        except ValueError:  # a quote that is not closed
            pieces += item.split()
    return pieces


def write_row(
    timing: CsvTiming, phase: str, request: CompileRequest, elapsed: float, sink: Sink
) -> None:
    """Add a row for a run to the table of -time; LinkError if the table cannot be opened."""
    try:
        is_complete = timing.add_row(
            phase,
            source=request.source,
            inputs=request.name,
            output=request.output,
            arch=request.arch,
            elapsed=elapsed,
        )
    except OSError as error:
        sink.fatal("cannot-open-file", file=str(error.filename))
    if not is_complete:
        sink.report("report-incomplete", file=timing.file)
