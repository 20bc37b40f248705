"""Compiles LTO-IR to PTX, by nvJitLink."""

from __future__ import annotations

import json
import os
import re

from pylink.diagnostics.stream import to_bytes
from pylink.facts.fatbinentries import check_entries, is_fatbin
from pylink.subtools import worker
from pylink.subtools.keptfunctions import keep_source
from pylink.subtools.programs import find_python, module_paths
from pylink.subtools.ptxas import CompileRequest, split_arguments, time_limit, write_row
from pylink.subtools.runner import Command, Outcome, run_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.compileinputs import CompileInput
    from pylink.inputs.references import References
    from pylink.options.model import Options
    from pylink.phases.init import Job
    from pylink.subtools.compilers import Compilers
    from pylink.timing import CsvTiming

# Milliseconds of compiling in one thread above which a remark says that there can be several.
LONG_LINK_MS = 60_000


def compile_lto(
    modules: Sequence[CompileInput],
    compilers: Compilers,
    job: Job,
    sink: Sink,
    *,
    keep: Sequence[str] | None = None,
    used: References | None = None,
) -> tuple[bytes, float]:
    """Return PTX of the modules, and the compile time in ms without the start of the process.

    LinkError if they cannot be compiled. The modules are a whole program, unless `keep` is given,
    the functions that other parts of the link call: these stay visible, and so do all kernels and
    variables. If `used` is given, a whole program keeps only these names, which host code uses.
    """
    check_entries(modules, sink)
    options = job.options
    preload = [file for file in (compilers.nvjitlink, compilers.nvvm) if file is not None]
    for file in preload:
        job.plan.check_input(file, sink)
    task = {
        "path": module_paths(),
        "options": nvjitlink_arguments(options, is_whole=keep is None, used=used),
        "preload": preload,
        "keep": keep_source(keep or ()),
        "modules": [
            (
                to_bytes(module.name).decode("utf-8", "replace"),
                "FATBIN" if is_fatbin(module.data) else "LTOIR",
                len(module.data),
            )
            for module in modules
        ],
    }
    head = json.dumps(task).encode() + b"\n"
    command = Command(
        [find_python(), worker.__file__], head + b"".join(module.data for module in modules)
    )
    (outcome,) = run_all([command], timeout=time_limit(options))
    reason = "; ".join(line for line in outcome.log.splitlines() if line)
    if outcome.status == worker.MISSING:
        sink.fatal("nvjitlink-missing", reason=reason)
    if outcome.failure is not None:
        if outcome.status != worker.FAILED:
            last = outcome.log.strip().rpartition("\n")[2]
            reason = ": ".join(filter(None, (f"the compiler {outcome.failure}", last)))
        sink.fatal("lto-failed", reason=reason)
    _report_other_release(outcome.log, options, sink)
    split = options.split_compile_extended or options.split_compile
    if outcome.elapsed > LONG_LINK_MS and split in (None, 1):
        sink.report("lto-slow", seconds=round(outcome.elapsed / 1000))
    return outcome.data, _compile_time(outcome)


def _compile_time(outcome: Outcome) -> float:
    """Return the milliseconds that the compiler reports, else the wall time of its process."""
    match = re.search(rf"^{worker.TIME_PREFIX} ([0-9.]+) ms$", outcome.log, re.MULTILINE)
    return float(match[1]) if match is not None else outcome.elapsed


def _report_other_release(log: str, options: Options, sink: Sink) -> None:
    """Report it if the compiler, by its log, is not of the release that the link follows."""
    match = re.search(rf"^{worker.RELEASE_PREFIX} ([0-9]+\.[0-9]+)$", log, re.MULTILINE)
    if options.follows is not None and match is not None and match[1] != options.follows:
        sink.report("other-lto-compiler", compiler=match[1], release=options.follows)


def write_lto_row(timing: CsvTiming, options: Options, elapsed: float, sink: Sink) -> None:
    """Add the compilation of the LTO-IR to the table of -time."""
    row = CompileRequest("lto.nvvm", "", "lto.ptx", b"", options.arch)
    write_row(timing, "cicc", row, elapsed, sink)


def nvjitlink_arguments(
    options: Options, *, is_whole: bool, used: References | None = None
) -> list[str]:
    """Return the options for nvJitLink.

    `is_whole` says that the modules are a whole program; of such a program `used` are the names
    that host code uses, None if unknown.
    """
    argv = [f"-arch={options.arch}", "-lto", "-ptx"]
    if options.Ofast_compile is not None:
        argv.append(f"-Ofc={options.Ofast_compile}")
    if options.debug and not options.suppress_debug_info:
        argv.append("-g")
    if options.nvvm_latest:
        argv.append("-nvvm-latest")
    if options.maxrregcount:
        argv.append(f"-maxrregcount={options.maxrregcount}")
    # Extended splitting concerns the step after this one: the result here is one PTX text in any
    # case.
    threads = options.split_compile_extended
    if threads is None:
        threads = options.split_compile
    if threads is not None:
        argv.append(f"-split-compile={max(threads, 0)}")
    if is_whole:
        kernels, variables = list(options.kernels_used), list(options.variables_used)
        if used is not None:
            # nvJitLink accepts the asterisks in these names.
            kernels += [os.fsdecode(name) for name in (*used.external, *used.internal)]
            variables += [os.fsdecode(name) for name in used.variables]
        argv += [f"-kernels-used={name}" for name in kernels]
        argv += [f"-variables-used={name}" for name in variables]
        # For nvlink, a list of kernels without variables means that no variable is used.
        if kernels and not variables:
            argv.append("-optimize-unused-variables")
    return argv + [f"-Xnvvm={word}" for word in split_arguments(options.Xnvvm)]
