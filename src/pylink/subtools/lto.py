"""LTO-IR to PTX, by nvJitLink."""

from __future__ import annotations

import json
import os
import re

from pylink.diagnostics.stream import to_bytes
from pylink.facts.fatbinentries import check_entries, is_fatbin
from pylink.subtools import worker
from pylink.subtools.keptfunctions import keep_source
from pylink.subtools.programs import find_python, module_paths
from pylink.subtools.ptxas import Request, split, time_limit, write_row
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

# A link that takes longer, in ms, gets a remark that the compiler can work in several threads.
LONG = 60_000


def compile_lto(
    modules: Sequence[CompileInput],
    compilers: Compilers,
    job: Job,
    sink: Sink,
    *,
    keep: Sequence[str] | None = None,
    used: References | None = None,
) -> tuple[bytes, float]:
    """PTX of the modules and how many milliseconds the compiler took, without its process.

    LinkError when they cannot be compiled.

    They are a whole program, unless `keep` names the functions that other parts of the link call:
    those stay visible, and so do all kernels and variables. A whole program keeps only what is
    `used` by host code, where that is known.
    """
    check_entries(modules, sink)
    options = job.options
    preload = [file for file in (compilers.nvjitlink, compilers.nvvm) if file is not None]
    for file in preload:
        job.plan.check_input(file, sink)
    task = {
        "path": module_paths(),
        "options": arguments(options, whole=keep is None, used=used),
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
        [find_python(), worker.__file__],
        head + b"".join(module.data for module in modules),
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
    _note_release(outcome.log, options, sink)
    split = options.split_compile_extended or options.split_compile
    if outcome.elapsed > LONG and split in (None, 1):
        sink.report("lto-slow", seconds=round(outcome.elapsed / 1000))
    return outcome.data, _compile_time(outcome)


def _compile_time(outcome: Outcome) -> float:
    """How long the compiler itself worked, in milliseconds; that of its process if it is silent."""
    match = re.search(rf"^{worker.COMPILED} ([0-9.]+) ms$", outcome.log, re.MULTILINE)
    return float(match[1]) if match is not None else outcome.elapsed


def _note_release(log: str, options: Options, sink: Sink) -> None:
    """Say that the compiler is not that of the release which was asked for."""
    match = re.search(rf"^{worker.NAME} ([0-9]+\.[0-9]+)$", log, re.MULTILINE)
    if options.follows is not None and match is not None and match[1] != options.follows:
        sink.report("other-lto-compiler", compiler=match[1], release=options.follows)


def write_lto_row(timing: CsvTiming, options: Options, elapsed: float, sink: Sink) -> None:
    """Add the compilation of the LTO-IR to the table of -time."""
    row = Request("lto.nvvm", "", "lto.ptx", b"", options.arch)
    write_row(timing, "cicc", row, elapsed, sink)


def arguments(options: Options, *, whole: bool, used: References | None = None) -> list[str]:
    """The options for nvJitLink."""
    argv = [f"-arch={options.arch}", "-lto", "-ptx"]
    if options.Ofast_compile is not None:
        argv.append(f"-Ofc={options.Ofast_compile}")
    if options.debug and not options.suppress_debug_info:
        argv.append("-g")
    if options.nvvm_latest:
        argv.append("-nvvm-latest")
    if options.maxrregcount:
        argv.append(f"-maxrregcount={options.maxrregcount}")
    # Its PTX is one text in any case: extended splitting is of use to what comes after it.
    threads = options.split_compile_extended
    if threads is None:
        threads = options.split_compile
    if threads is not None:
        argv.append(f"-split-compile={max(threads, 0)}")
    if whole:
        kernels, variables = list(options.kernels_used), list(options.variables_used)
        if used is not None:
            # nvJitLink knows the asterisks in these names.
            kernels += [os.fsdecode(name) for name in (*used.external, *used.internal)]
            variables += [os.fsdecode(name) for name in used.variables]
        argv += [f"-kernels-used={name}" for name in kernels]
        argv += [f"-variables-used={name}" for name in variables]
        # To nvlink, kernels without variables mean that no variable is used.
        if kernels and not variables:
            argv.append("-optimize-unused-variables")
    return argv + [f"-Xnvvm={word}" for word in split(options.Xnvvm)]
