"""LTO-IR to PTX, by nvJitLink."""

from __future__ import annotations

import glob
import json
import os
import re

from pylink.diagnostics.stream import to_bytes
from pylink.inputs.entries import check_entries, is_fatbin
from pylink.subtools import worker
from pylink.subtools.find import find_python, module_paths, wheel_directories
from pylink.subtools.keep import keep_source
from pylink.subtools.ptxas import Request, split, time_limit, write_row
from pylink.subtools.run import Command, run_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.pieces import Piece
    from pylink.inputs.references import References
    from pylink.options import Options
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

# What the libraries are called in a toolkit, whose `nvvm` directory is what -nvvmpath names.
NVJITLINK = ("../lib64/libnvJitLink.so.*", "../lib/libnvJitLink.so.*", "lib64/libnvJitLink.so.*")
NVVM = ("lib64/libnvvm.so", "lib64/libnvvm.so.*", "lib/libnvvm.so.*", "../lib/libnvvm.so.*")


def compile_lto(
    modules: Sequence[Piece],
    job: Job,
    sink: Sink,
    *,
    keep: Sequence[str] | None = None,
    used: References | None = None,
) -> tuple[bytes, float]:
    """PTX of the modules and the milliseconds it took; LinkError when they cannot be compiled.

    They are a whole program, unless `keep` names the functions that other parts of the link call:
    those stay visible, and so do all kernels and variables. Of a whole program only what is `used`
    by host code stays, where that is known.
    """
    check_entries(modules, sink)
    options = job.options
    preload = libraries(options.nvvmpath)
    for places in preload:
        for file in places:
            job.plan.reads(file, sink)
    task = {
        "path": module_paths(),
        "options": arguments(options, whole=keep is None, used=used),
        "preload": preload,
        "keep": keep_source(keep or ()),
        "modules": [
            (
                to_bytes(one.name).decode("utf-8", "replace"),
                "FATBIN" if is_fatbin(one.data) else "LTOIR",
                len(one.data),
            )
            for one in modules
        ],
    }
    head = json.dumps(task).encode() + b"\n"
    command = Command(
        [find_python(), worker.__file__],
        head + b"".join(one.data for one in modules),
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
    return outcome.data, outcome.elapsed


def _note_release(log: str, options: Options, sink: Sink) -> None:
    """Say that the compiler is not that of the release which was asked for."""
    said = re.search(rf"^{worker.NAME} ([0-9]+\.[0-9]+)$", log, re.MULTILINE)
    if options.follows is not None and said is not None and said[1] != options.follows:
        sink.report("other-lto-compiler", made=said[1], release=options.follows)


def write_lto_row(timing: CsvTiming, options: Options, elapsed: float, sink: Sink) -> None:
    """Add the compilation of the LTO-IR to the table of -time."""
    row = Request("lto.nvvm", "", "lto.ptx", b"", options.arch)
    write_row(timing, "cicc", row, elapsed, sink)


def arguments(options: Options, *, whole: bool, used: References | None = None) -> list[str]:
    """What nvJitLink is told."""
    words = [f"-arch={options.arch}", "-lto", "-ptx"]
    if options.Ofast_compile is not None:
        words.append(f"-Ofc={options.Ofast_compile}")
    if options.maxrregcount:
        words.append(f"-maxrregcount={options.maxrregcount}")
    # Its PTX is one text in any case: extended splitting is of use to what comes after it.
    threads = options.split_compile_extended
    if threads is None:
        threads = options.split_compile
    if threads is not None:
        words.append(f"-split-compile={max(threads, 0)}")
    if whole:
        kernels, variables = list(options.kernels_used), list(options.variables_used)
        if used is not None:
            # nvJitLink knows the asterisks in these names.
            kernels += [os.fsdecode(name) for name in (*used.external, *used.internal)]
            variables += [os.fsdecode(name) for name in used.variables]
        words += [f"-kernels-used={name}" for name in kernels]
        words += [f"-variables-used={name}" for name in variables]
        # To nvlink, kernels without variables mean that no variable is used.
        if kernels and not variables:
            words.append("-optimize-unused-variables")
    return words + [f"-Xnvvm={word}" for word in split(options.Xnvvm)]


def libraries(nvvmpath: str | None) -> list[list[str]]:
    """Where a toolkit, then wheels, have libnvJitLink and libnvvm, for `worker.preload`."""
    places = [os.path.abspath(nvvmpath)] if nvvmpath and os.path.isdir(nvvmpath) else []
    places += [os.path.join(wheel, "nvvm") for wheel in wheel_directories()]
    return [
        [
            path
            for place in places
            for pattern in patterns
            for path in sorted(glob.glob(os.path.join(glob.escape(place), pattern)))
        ]
        for patterns in (NVJITLINK, NVVM)
    ]
