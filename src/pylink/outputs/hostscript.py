"""-gen-host-linker-script: the linker script that keeps device code together in a host program."""

from __future__ import annotations

from pylink.diagnostics.stream import printable, write
from pylink.files.atomic import write_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink

# The blank after the second rule is part of nvlink's text.
SECTIONS = """\
SECTIONS
{
\t.nvFatBinSegment : { *(.nvFatBinSegment) }
\t__nv_relfatbin : { *(__nv_relfatbin) }\x20
\t.nv_fatbin : { *(.nv_fatbin) }
}
"""


# Limit of each command in seconds; usually it takes some milliseconds.
_TIME_LIMIT = 60


def write_host_script(kind: str, file: str | None, sink: Sink, *, verbose: bool = False) -> None:
    """Write a script of this kind to the file, or without one to standard output.

    `lcs-aug` extends the script of the host linker; `lcs-abs` replaces it and starts with a copy.
    `verbose` prints the commands that find that script.
    """
    text = SECTIONS
    if kind == "lcs-abs":
        text = _default_script(sink, verbose=verbose) + SECTIONS
    write_text(file, text, sink)


def _default_script(sink: Sink, *, verbose: bool) -> str:
    """Return the host linker's script for programs that the host compiler links on this machine."""
    flags = _linker_flags(_run(["gcc", "-###", "/dev/null", "-m64"], verbose=verbose) or "")
    banner = _run(["ld", "-V"], verbose=verbose)
    linker_output = _run(["ld", "--verbose", *flags], verbose=verbose)
    if linker_output is None or banner is None:
        sink.fatal("host-script-failed")
    # `ld --verbose` prints the banner, a line of text, a line of equal signs, the script, and
    # another line of equal signs.
    banner_lines = set(banner.splitlines())
    lines = [line for line in linker_output.splitlines() if line not in banner_lines]
    if len(lines) < 4:
        sink.fatal("host-script-failed")
    return "\n".join(lines[2:-1]) + "\n"


def _linker_flags(driver_output: str) -> list[str]:
    """Return the linker flags that select the script.

    `driver_output` is the command that the compiler driver would run.
    """
    flags = []
    for line in driver_output.splitlines():
        if "collect2" not in line:
            continue
        arguments = [argument.strip('"') for argument in line.split()]
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
            if argument in ("-pie", "-r", "-shared"):
                flags.append(argument)
            elif argument in ("-z", "-m") and following:
                flags += [argument, following]
    return flags


def _run(argv: Sequence[str], *, verbose: bool) -> str | None:
    """Run a command and return its output of both streams; None if it cannot be run or fails."""
    from pylink.subtools.programs import find_program
    from pylink.subtools.runner import Command, run_all

    if verbose:
        write(None, f"#$ {printable(' '.join(argv))}\n")
    program = find_program(argv[0])
    if program is None:
        return None
    command = Command([program, *argv[1:]], None, prints=True)
    (outcome,) = run_all([command], timeout=_TIME_LIMIT)
    return None if outcome.failure else outcome.printed.decode("utf-8", "surrogateescape")
