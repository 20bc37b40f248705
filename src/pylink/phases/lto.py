"""Phases cicc-lto and ptxas-lto: the LTO-IR of a link becomes PTX, and that a cubin.

When all inputs have LTO-IR, the cubin is the whole program and the result of the link. Otherwise
it is one more relocatable cubin.
"""

from __future__ import annotations

import re

from pylink._native import elfread
from pylink.facts.elf import SHN_UNDEF, STB_LOCAL, STT_OBJECT
from pylink.inputs.loaded import SYSTEM_LIBRARY
from pylink.inputs.unpack import add_optimized, known_references
from pylink.phases.faults import report_fault
from pylink.subtools import ptxas
from pylink.subtools.lto import compile_lto, write_lto_row
from pylink.tables import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.loaded import Loaded
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

# An undefined function of a PTX text, after its result, if it has one.
EXTERN = re.compile(rb"^\.extern \.func\s+(?:\([^)]*\)\s*)?([\w$]+)", re.MULTILINE)


class Optimized:
    """The program after link-time optimization.

    `ptx` is its text. `whole` says that no other cubin belongs to it. `image` is the output of the
    link, empty while something is left to be done; at the end that is to link `loaded`.
    """

    __slots__ = ("image", "job", "loaded", "ptx", "whole")

    def __init__(self, loaded: Loaded, ptx: bytes, *, whole: bool, image: bytes = b"") -> None:
        self.job: Job = loaded.job
        self.loaded = loaded
        self.ptx = ptx
        self.whole = whole
        self.image = image


def find_modules(loaded: Loaded, sink: Sink) -> bool:
    """Whether the link has LTO-IR; says which inputs have none, as -lto asks for it."""
    for name in plain_names(loaded):
        sink.report("lto-partial", file=name)
    if not loaded.modules:
        sink.report("lto-ignored")
    return bool(loaded.modules)


def cicc_lto(loaded: Loaded, timing: CsvTiming, sink: Sink) -> Optimized:
    """Compile the LTO-IR to PTX, which is the output itself with -emit-ptx."""
    options = loaded.job.options
    if not loaded.job.executable:
        sink.fatal("lto-relocatable", file=loaded.modules[0].name)
    partial = bool(plain_names(loaded))
    keep = undefined_functions(loaded, sink) if partial else None
    loaded.job.steps.done("find_undefined_functions")
    used = None if partial else known_references(loaded)
    ptx, elapsed = compile_lto(loaded.modules, loaded.job, sink, keep=keep, used=used)
    loaded.job.steps.done("compile_lto")
    whole = not partial and not calls_runtime(loaded, ptx, sink)
    if used is not None and not whole:
        # What is linked keeps all kernels until the link itself leaves some out.
        ptx, more = compile_lto(loaded.modules, loaded.job, sink)
        elapsed += more
    write_lto_row(timing, options, elapsed, sink)
    return Optimized(loaded, ptx, whole=whole, image=ptx if options.emit_ptx else b"")


def ptxas_lto(program: Optimized, timing: CsvTiming, sink: Sink) -> Optimized:
    """Assemble the PTX."""
    loaded = program.loaded
    options = loaded.job.options
    request = ptxas.Request(
        "lto.ptx",
        "",
        "lto.cubin",
        program.ptx,
        options.arch,
        relocatable=not program.whole,
        optimized=True,
    )
    (cubin,) = ptxas.compile_ptx([request], loaded.job, sink, timing)
    loaded.job.steps.done("assemble")
    linked = add_optimized(loaded, None if program.whole else cubin, sink)
    if program.whole:
        return Optimized(linked, program.ptx, whole=True, image=cubin)
    return Optimized(linked, program.ptx, whole=False)


def plain_names(loaded: Loaded) -> list[str]:
    """Names of the cubins, but for those of the device runtime.

    That library has no LTO-IR, and only joins when the program calls it, whatever
    -keep-system-libraries says.
    """
    return [name for name in loaded.names if SYSTEM_LIBRARY not in name]


def undefined_functions(loaded: Loaded, sink: Sink) -> list[str]:
    """Names that the cubins use and none of them defines, in order of appearance."""
    defined, undefined = global_names(loaded, sink)
    return [name for name in undefined if name not in defined]


def calls_runtime(loaded: Loaded, ptx: bytes, sink: Sink) -> bool:
    """Whether the PTX calls something that a cubin of the device runtime defines."""
    called = {name.decode() for name in EXTERN.findall(ptx)}
    if not called or not loaded.names:
        return False
    defined, _ = global_names(loaded, sink)
    return not called.isdisjoint(defined)


def global_names(loaded: Loaded, sink: Sink) -> tuple[dict[str, None], dict[str, None]]:
    """What the cubins define and what they leave undefined, in order; LinkError when damaged."""
    arena = loaded.arena
    files, sections, symbols, faults = elfread.parse(arena, loaded.extents)
    if faults:
        report_fault(
            faults[0], arena, files, sections, loaded.extents, loaded.names, loaded.job, sink
        )
        sink.stop()
    defined: dict[str, None] = {}
    undefined: dict[str, None] = {}
    for symbol in symbols:
        if symbol.info >> 4 == STB_LOCAL or not symbol.name_size:
            continue
        name = text(arena, symbol.name, symbol.name_size)
        if symbol.shndx != SHN_UNDEF:
            defined[name] = None
        elif symbol.info & 0xF != STT_OBJECT:
            undefined[name] = None
    return defined, undefined
