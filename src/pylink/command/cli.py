"""The command line: nvlink's, plus the commands that nvlink does not have.

`pylink ...` and `pylink link ...` link. The other commands are modules of their own, which are
loaded on demand. Started under the name `nvlink`, the program has no commands and only links, and
uses that name in messages. Exit status of a link: 0, 1 after a fatal error, 130 after an interrupt,
255 after other errors.
"""

from __future__ import annotations

import os
import sys

from pylink.diagnostics import NvlinkRenderer, Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.nvlink import NVLINK
from pylink.diagnostics.stream import is_terminal, write
from pylink.files.overlayfiles import find_binaries, followed_release, wants_notes
from pylink.options.check import check
from pylink.options.filenames import expand_names
from pylink.options.parse import OPTIONS_VARIABLE, CommandLine, parse, parse_leniently
from pylink.options.plan import OutputPlan
from pylink.renderers.configuration import configure_sink, open_reports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# A link of fewer inputs than MANY_INPUTS, none of them an archive of LARGE_ARCHIVE bytes or more,
# does not gain from large pages: it needs less memory than one such page for each of its tables.
MANY_INPUTS = 100
LARGE_ARCHIVE = 8 << 20
# From this number of inputs on, a link shows its progress on a terminal.
LONG_LINK = 1000

# The name of this program in messages, unless it was started as nvlink.
TOOL = "pylink"
# The module of `pylink dlink`, which, like a link, may change how its process allocates memory.
STEP_MODULE = "pylink.devicelink.command"


def gains_from_large_pages(names: Sequence[str]) -> bool:
    """Return whether a link of these inputs probably gains from large pages."""
    if len(names) >= MANY_INPUTS:
        return True
    try:
        return any(name.endswith(".a") and os.stat(name).st_size >= LARGE_ARCHIVE for name in names)
    except (OSError, ValueError):  # the link reports it
        return False


def main(
    argv: Sequence[str] | None = None, *, tool: str | None = None, owns_process: bool = False
) -> int:
    """Run the command line and return the exit status.

    `tool` is the name of the program in messages (default: NVLINK if it was started under that
    name, else TOOL). With `owns_process`, a link or a device-link step may change how the process
    allocates memory, and a long link shows its progress on a terminal.
    """
    argv_list = list(sys.argv[1:] if argv is None else argv)
    if tool is None:
        tool = NVLINK if os.path.basename(sys.argv[0]) == NVLINK else TOOL
    command = argv_list[0] if argv_list else ""
    if tool != NVLINK and not argv_list and OPTIONS_VARIABLE not in os.environ:
        command = "help"
    try:
        if tool != NVLINK and command[:1].isalpha() and command != "link":
            from pylink.options.commands import COMMANDS

            two_words = "-".join(argv_list[:2])
            if command in COMMANDS and two_words != command and two_words in COMMANDS:
                command = two_words  # `dedup index` is `dedup-index`; `dedup ./index` names a file
                del argv_list[0]
            if command in COMMANDS:
                module = COMMANDS[command].main
                __import__(module)  # importlib takes longer than a small step
                owned = owns_process and module == STEP_MODULE
                keywords = {"owns_process": True} if owned else {}
                try:
                    status: int = sys.modules[module].main(argv_list[1:], **keywords)
                except MemoryError:
                    write(None, f"{tool} fatal   : there is not enough memory\n")
                    return 1
                return status
        if tool != NVLINK and command == "link":
            del argv_list[0]
        return link_command(argv_list, tool, owns_process=owns_process)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 1


def link_command(argv: Sequence[str], tool: str, *, owns_process: bool) -> int:
    """Link, or do what an informational option asks for, and return the exit status."""
    sink = Sink(NvlinkRenderer(tool=tool, notes=_overlay_notes if tool == NVLINK else None))
    line = CommandLine()
    toolkit = None
    if tool == NVLINK:
        toolkit = followed_release(_find_own_binaries())
    try:
        plan = _read_options(argv, line, sink, tool)
        if line.values.get("help") or line.values.get("version"):
            return _print_help(line, tool, toolkit)
        if plan is None:
            form = terminal_form(tool)
            notes = _overlay_notes if tool == NVLINK else None
            configure_sink(
                sink, line.values, inputs=line.inputs, tool=tool, terminal_form=form, notes=notes
            )
        for options, action in INFORMATIONAL_OPTIONS:
            if any(map(line.values.get, options)):
                return action(line, sink)
        if plan is None:
            plan = OutputPlan(line.values, line.inputs, sink, opened=line.files)
            open_reports(sink, line.values)
        if tool != NVLINK and argv and argv[0].replace("-", "").isalpha() and argv[0][0] != "-":
            from pylink.options.suggestions import refuse_unknown_command

            refuse_unknown_command(argv[0], line.values, sink)
        _link(line, plan, sink, tool, toolkit, owns_process=owns_process)
    except LinkError:
        return sink.exit_code()
    except Exception as error:
        return _report_exception(error, sink)
    finally:
        sink.close()
    return sink.exit_code()


def _link(
    line: CommandLine,
    plan: OutputPlan,
    sink: Sink,
    tool: str,
    toolkit: str | None,
    *,
    owns_process: bool,
) -> None:
    """Check the options, then link; LinkError after a fatal error.

    `toolkit` is the release of nvlink that an overlay names for its links, None without one.
    """
    check(
        line.values,
        sink,
        has_inputs=bool(line.inputs),
        needs_output=True,
        toolkit=toolkit,
        spellings=line.spellings,
    )

    # These are imported only after the check, so that a wrong option is reported quickly.
    from pylink.linker import run_link
    from pylink.options.model import Input

    if tool == NVLINK:
        line.values["allow_missing_libraries"] = True
    inputs = [
        Input(name, whole_archive=is_whole)
        for name, is_whole in zip(line.inputs, line.whole_inputs, strict=True)
    ]
    if owns_process and gains_from_large_pages(line.inputs):
        from pylink._native.inputfiles import keep_memory

        keep_memory()
    is_long = len(inputs) >= LONG_LINK or bool(line.values.get("profile_aprof"))
    run_link(
        line.values,
        inputs,
        plan,
        sink,
        line.whole_libraries,
        toolkit=toolkit,
        shows_progress=owns_process and is_long and is_terminal(sys.stderr),
    )


def _read_options(
    argv: Sequence[str], line: CommandLine, sink: Sink, tool: str
) -> OutputPlan | None:
    """Parse the arguments into `line`; LinkError for a wrong argument.

    Diagnostics about the arguments wait until all options are known, since options choose their
    format. If there are any, they are reported then, and the plan of the output files is returned.
    If there are none, None is returned.
    """
    argument_sink = Sink()
    environment = os.environ.get(OPTIONS_VARIABLE, "")
    values = line.values
    try:
        parse(argv, argument_sink, line, environment)
    except LinkError:
        values = parse_leniently(argv, environment).values
    expand_names(values)
    if not argument_sink.diagnostics:
        return None
    notes = _overlay_notes if tool == NVLINK else None
    form = terminal_form(tool)
    configure_sink(sink, values, inputs=line.inputs, tool=tool, terminal_form=form, notes=notes)
    plan = OutputPlan(values, line.inputs, sink, opened=line.files)
    open_reports(sink, values)
    if sink.policy.as_nvlink:
        # nvlink reports faults of arguments before it evaluates -report-arch, so its messages about
        # them do not name the target.
        renderer = sink.renderers[0]
        assert isinstance(renderer, NvlinkRenderer)
        sink.renderers[0] = NvlinkRenderer(tool=tool, notes=renderer.notes)
        try:
            sink.report_records(argument_sink.diagnostics)
        finally:
            sink.renderers[0] = renderer
    else:
        sink.report_records(argument_sink.diagnostics)
    return plan


def _overlay_notes() -> bool | None:
    """Return True if this program was started from an overlay with notes; None otherwise."""
    return wants_notes(_find_own_binaries())


def _find_own_binaries() -> str | None:
    """Return the directory from which this program was started; None if it is not found.

    It may be the `bin` of an overlay: a toolkit in which pylink has the place of nvlink.
    """
    return find_binaries(sys.argv[0], os.environ.get("PATH", os.defpath))


def terminal_form(tool: str) -> str:
    """Return the default format of diagnostics on a terminal.

    That is nvlink's if the program was started under the name nvlink, else text.
    """
    return "nvlink" if tool == NVLINK else "text"


def _report_exception(error: Exception, sink: Sink) -> int:
    """Report exhausted memory, or an internal error with the source line that raised it.

    Returns the exit status.
    """
    trace = error.__traceback__
    place = ""
    while trace is not None:
        file = f"/{trace.tb_frame.f_code.co_filename}".rpartition("/pylink/")[2]
        place = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    try:
        if isinstance(error, MemoryError):
            sink.report("out-of-memory")
        else:
            sink.report("internal-error", reason=f"{type(error).__name__} in {place}: {error}")
    except LinkError:
        return sink.exit_code()
    return 1


def _print_help(line: CommandLine, tool: str, toolkit: str | None) -> int:
    """Print the text of --help or --version."""
    from pylink.options.help import full_help_text, help_text, short_help_text, version_text

    if sys.stdout is not None:  # None if the process was started with it closed
        version = line.values.get("nvlink_version")
        release = version if isinstance(version, str) else toolkit
        if not line.values.get("help"):
            text = version_text(tool, release)
        elif tool == NVLINK:
            text = help_text(tool)
        else:
            text = full_help_text() if line.inputs == ["all"] else short_help_text()
        write(sys.stdout, text)
    return 0


def _explain(line: CommandLine, sink: Sink) -> int:
    """Print the explanation of the diagnostic that --explain names."""
    from pylink.diagnostics.help import explanation
    from pylink.options.suggestions import suggest_kind
    from pylink.renderers.configuration import find_kind

    name = str(line.values["explain"])
    kind = find_kind(name)
    if kind is None:
        sink.fatal("unknown-diagnostic", value=name, explain=suggest_kind)
    if sys.stdout is not None:  # None if the process was started with it closed
        write(sys.stdout, explanation(kind))
    return 0


def _list_files(line: CommandLine, sink: Sink) -> int:
    """Print the sections, sets or rules of reports that an option asks for."""
    try:
        from pylink.report.view.listing import list_files

        return list_files(line.values, TOOL)
    except (ImportError, ValueError) as error:
        sink.fatal("listing-failed", reason=str(error))


def _write_host_script(line: CommandLine, sink: Sink) -> int:
    """Write the linker script of --gen-host-linker-script."""
    from pylink.outputs.hostscript import write_host_script

    if line.inputs:
        sink.fatal("inputs-with-host-script")
    OutputPlan(line.values, (), sink, opened=line.files)
    kind, file = line.values["gen_host_linker_script"], line.values.get("output_file")
    assert isinstance(kind, str)
    assert file is None or isinstance(file, str)
    write_host_script(kind, file, sink, verbose=bool(line.values.get("verbose")))
    return 0


# Options that replace the link, and the function that does what they ask for and returns the exit
# status. If several are given, the first row counts; --help and --version come before all rows.
INFORMATIONAL_OPTIONS = (
    (("explain",), _explain),
    (("list_sections", "list_sets", "list_rules"), _list_files),
    (("gen_host_linker_script",), _write_host_script),
)
