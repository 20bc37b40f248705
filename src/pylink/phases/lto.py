"""Phases cicc-lto and ptxas-lto: compile the LTO-IR of a link to PTX, and the PTX to a cubin.

If all inputs have LTO-IR, the cubin is the whole program and the result of the link. Otherwise it
is one more relocatable cubin.
"""

from __future__ import annotations

import re

from pylink._native import elfread
from pylink.facts.elf import SHN_UNDEF, STB_LOCAL
from pylink.facts.releases import TRAIT_OPTIMIZED_FIRST, release_to_follow
from pylink.inputs.kinds import SYSTEM_LIBRARY
from pylink.inputs.unpacking import add_optimized, known_references
from pylink.phases.faults import report_fault
from pylink.subtools import ptxas
from pylink.subtools.compilers import choose_compilers
from pylink.subtools.keptfunctions import drop_unused
from pylink.subtools.lto import compile_lto, write_lto_row
from pylink.tables import extent, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.loaded import Loaded
    from pylink.phases.init import Job
    from pylink.subtools.compilers import Compilers
    from pylink.timing import CsvTiming

# Declaration of an undefined function in PTX, with an optional result.
EXTERN = re.compile(rb"^\.extern \.func\s+(?:\([^)]*\)\s*)?([\w$]+)", re.MULTILINE)


class Optimized:
    """The program after link-time optimization.

    `ptx` is its text, compiled by `compilers`. `whole_program` says that no cubin is linked with
    it. `toolkit`, which only cicc-lto sets, is the newest toolkit of the cubins beside it. `image`
    is the output of the link once it is finished, else empty. If it is still empty after ptxas-lto,
    `loaded` must be linked.
    """

    __slots__ = ("compilers", "image", "job", "loaded", "ptx", "toolkit", "whole_program")

    def __init__(
        self,
        loaded: Loaded,
        ptx: bytes,
        compilers: Compilers,
        *,
        whole_program: bool,
        toolkit: int = 0,
        image: bytes = b"",
    ) -> None:
        self.job: Job = loaded.job
        self.compilers = compilers
        self.loaded = loaded
        self.ptx = ptx
        self.whole_program = whole_program
        self.toolkit = toolkit
        self.image = image


def check_modules(loaded: Loaded, sink: Sink) -> bool:
    """Return whether the link has modules of LTO-IR; warn of inputs that have none."""
    for name in _plain_names(loaded):
        sink.report("lto-partial", file=name)
    if not loaded.modules:
        sink.report("lto-ignored")
    return bool(loaded.modules)


def cicc_lto(sink: Sink, loaded: Loaded, timing: CsvTiming) -> Optimized:
    """Compile the LTO-IR to PTX, which is the output itself with -emit-ptx."""
    options = loaded.job.options
    if not loaded.job.executable:
        sink.fatal("lto-relocatable", file=loaded.modules[0].name)
    compilers = choose_compilers(options, sink)
    partial = options.force_partial_lto or bool(_plain_names(loaded))
    names, toolkit = read_cubins(loaded, sink) if loaded.names else ({}, 0)
    # In a partial link, cubins are linked with the result: the compiler must keep what they name.
    # Names that begin with a period belong to linkers, not to a program.
    keep = [name for name in names if not name.startswith(".")] if partial else None
    loaded.job.steps.end_step("read_cubins")
    used = None if partial else known_references(loaded)
    ptx, elapsed = compile_lto(loaded.modules, compilers, loaded.job, sink, keep=keep, used=used)
    if keep is not None:
        ptx = drop_unused(ptx, keep)
    loaded.job.steps.end_step("compile_lto")
    whole_program = not partial and not _calls_any(ptx, names)
    if used is not None and not whole_program:
        # Compile again with all kernels: the link itself will omit the unused ones.
        ptx, compile_ms = compile_lto(loaded.modules, compilers, loaded.job, sink)
        elapsed += compile_ms
    write_lto_row(timing, options, elapsed, sink)
    image = ptx if options.emit_ptx else b""
    return Optimized(
        loaded, ptx, compilers, whole_program=whole_program, toolkit=toolkit, image=image
    )


def ptxas_lto(sink: Sink, program: Optimized, timing: CsvTiming) -> Optimized:
    """Assemble the PTX to a cubin: the whole program, or one more input of the link."""
    loaded = program.loaded
    options = loaded.job.options
    request = ptxas.CompileRequest(
        "lto.ptx",
        "",
        "lto.cubin",
        program.ptx,
        options.arch,
        relocatable=not program.whole_program,
        optimized=True,
    )
    compilers = program.compilers
    (cubin,) = ptxas.compile_ptx([request], loaded.job, sink, timing, compilers.ptxas)
    loaded.job.steps.end_step("assemble")
    if program.whole_program:
        linked = add_optimized(loaded, None, sink)
        return Optimized(linked, program.ptx, compilers, whole_program=True, image=cubin)
    files, _, _, _ = elfread.parse(cubin, extent(0, len(cubin)))
    newest = max(program.toolkit, *(file.toolkit for file in files))
    release = release_to_follow(options.nvlink, newest)
    comes_first = release.traits & TRAIT_OPTIMIZED_FIRST != 0
    linked = add_optimized(loaded, cubin, sink, first=comes_first)
    return Optimized(linked, program.ptx, compilers, whole_program=False)


def _plain_names(loaded: Loaded) -> list[str]:
    """Return the names of the cubins, except for cubins of the device runtime.

    The device runtime has no LTO-IR, and is linked only if the program calls it, even with
    -keep-system-libraries.
    """
    return [name for name in loaded.names if SYSTEM_LIBRARY not in name]


def _calls_any(ptx: bytes, names: dict[str, bool]) -> bool:
    """Return whether the PTX declares a function that a cubin of the link defines.

    In a link that is not partial, only the device runtime has cubins. `names` has the global names
    of the cubins, with True if a cubin defines the name.
    """
    return any(names.get(name.decode(), False) for name in EXTERN.findall(ptx))


def read_cubins(loaded: Loaded, sink: Sink) -> tuple[dict[str, bool], int]:
    """Return the global names in the cubins, with True if defined, and the newest toolkit.

    Names are in order of appearance; the toolkit is 0 without cubins. LinkError if one is damaged.
    """
    arena = loaded.arena
    files, sections, symbols, faults = elfread.parse(arena, loaded.extents)
    if faults:
        report_fault(faults[0], loaded, files, sections, sink)
        sink.stop()
    names: dict[str, bool] = {}
    for symbol in symbols:
        if symbol.info >> 4 == STB_LOCAL or not symbol.name_size:
            continue
        name = text(arena, symbol.name, symbol.name_size)
        names[name] = names.get(name, False) or symbol.shndx != SHN_UNDEF
    newest = max((files[number].toolkit for number in elfread.find_changes(files)), default=0)
    return names, newest
