"""Shared libraries of the host with relocatable device code: what they say, and what is linked.

A module of such code, one for each source file, has an id, which the library names in two symbols:

    __cudaRegisterLinkedBinary<ID>   called when the program starts; whoever links the code has it
    __fatbinwrap<ID>                 where the code is

An id is open if the library does not define the first: nobody has linked the code yet, and this
link does. It is closed if a link for the library itself did; its code is none of ours. A library
that only holds such a link, of modules in other libraries, has closed ids and no code.
docs/shared-libraries.md has the rules, and tests/differential/test_shared_programs.py holds them.
"""

from __future__ import annotations

import os
from struct import Struct

from pylink._native import sharedlibs
from pylink.inputs.kinds import ELF_MAGIC, HOST
from pylink.inputs.registration import Module, find_losses, report_losses
from pylink.inputs.sources import TOGETHER, Library
from pylink.options.plan import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from pylink.diagnostics import Sink
    from pylink.inputs.contents import Found
    from pylink.inputs.sources import Source, Sources
    from pylink.options.plan import Identity
    from pylink.phases.init import Job

# DynamicRow of sharedlibs.pyx, its numbers, and the states of a file.
ROW = Struct("<2I3Q")
OPEN, CLOSED, WRAPPER, ANCHOR, MODULE = 1, 2, 3, 4, 5
NO_CODE, HAS_CODE = 0, 1
DAMAGE = {
    2: "its dynamic symbols lie outside the file",
    3: "the name of a dynamic symbol lies outside the string table",
}

# What `__nv_module_id` has besides ids of modules: one word for each that is no relocatable code,
# and what the registration functions of a device link put there.
NOT_RELOCATABLE = b"__NV_MODULE_ID"
DEFINED = b"def "


def read_library(
    data: bytes | mmap, offset: int, size: int, name: str, sink: Sink
) -> Library | None:
    """What the library says, None without relocatable device code; damage is reported."""
    state, rows, has_runtime = sharedlibs.find_symbols(data, offset, size)
    if state == NO_CODE:
        return None
    if state in DAMAGE:
        sink.report("host-format", file=name, reason=DAMAGE[state])
        return None
    library = Library(name)
    library.has_runtime = has_runtime
    for what, interposable, start, length, _ in ROW.iter_unpack(rows):
        text = data[offset + start : offset + start + length]
        if what == OPEN:
            library.open[text] = None
        elif what == CLOSED:
            library.closed[text] = None
            if interposable:
                library.interposable.add(text)
        elif what == WRAPPER:
            library.wrappers.add(text)
        elif what == MODULE:
            library.contained.add(text)
        else:
            library.anchor = text
    if not library.contained:
        # Without that section, these still show that the file has the module.
        library.contained = library.wrappers | library.interposable
    return library


class Libraries:
    """The shared libraries of a link that have device code.

    `found` has them in the order of the inputs, also those that the link takes nothing of.
    `anchors` has the ids that are linked though no other file sees their wrapper, each with a
    symbol of its library.
    """

    __slots__ = ("anchors", "found")

    def __init__(self) -> None:
        self.found: list[Library] = []
        self.anchors: dict[str, str] = {}

    def take(
        self, source: Source, library: Library | None, place: int, sink: Sink
    ) -> Library | None:
        """What is known of a shared library, or is read now; None if the link needs none of it.

        `place` counts the sources in front of it.
        """
        if library is None and source.arena.startswith(ELF_MAGIC, source.offset):
            library = read_library(source.arena, source.offset, source.size, source.name, sink)
        if library is None:
            return None
        library.place = place
        self.found.append(library)
        return library if library.open else None

    def choose(self, job: Job, sources: Sources, found: Found, sink: Sink) -> dict[int, set[int]]:
        """Which containers of each library are linked, by number; sets what `found` says of it.

        An open module is, unless an object or archive has it as well, or another library of the
        link defines its registration: each is registered once. The first of two equal ones counts.
        """
        static = static_modules(job, sources, found)
        registered = set(static)
        owned = {identifier for library in self.found for identifier in library.closed}
        linked: dict[int, set[int]] = {}
        for source, library in sources.libraries.items():
            ids = module_ids(found.ids(source))
            containers = found.containers(source)
            if len(ids) != containers:
                sink.report(
                    "library-ids", file=sources.names[source], ids=len(ids), containers=containers
                )
            library.modules = len(ids)
            chosen = {
                identifier: number
                for number, identifier in enumerate(ids)
                if identifier in library.open
                and identifier not in registered
                and identifier not in owned
            }
            registered |= set(chosen)
            found.restrict(source, list(chosen))
            linked[source] = set(chosen.values())
            if chosen:
                self._check(library, list(chosen), sink)
        libraries = self._different()
        chosen_ids = registered - set(static)
        losses = find_losses(static, chosen_ids, libraries, is_shared=job.options.shared)
        if losses:
            report_losses(losses, static, libraries, sink, is_shared=job.options.shared)
        return linked

    def _different(self) -> list[Library]:
        """The libraries, each file once: the host's linker knows it when it comes again."""
        different: dict[Identity | str, Library] = {}
        for library in self.found:
            different.setdefault(identity(library.file) or library.file, library)
        return list(different.values())

    def _check(self, library: Library, ids: list[bytes], sink: Sink) -> None:
        """What the program of these modules of a library needs of it."""
        if library.has_runtime:
            sink.report("library-runtime", file=library.file)
        for identifier in ids:
            if identifier in library.wrappers:
                continue
            if library.anchor is None:
                sink.report("library-hidden", file=library.file, id=os.fsdecode(identifier))
            self.anchors[os.fsdecode(identifier)] = os.fsdecode(library.anchor or b"")


def static_modules(job: Job, sources: Sources, found: Found) -> dict[bytes, Module]:
    """The modules that the program registers of objects and of archives; of objects rather.

    The host program has all of an object, and of an archive what no library has.
    """
    modules: dict[bytes, Module] = {}
    for number, kind in enumerate(sources.kinds):
        if kind != HOST or sources.demands[number] == TOGETHER or not found.containers(number):
            continue
        archive = sources.group(number)
        name = job.inputs[archive - 1].name if archive else sources.names[number]
        for identifier in module_ids(found.ids(number)):
            if identifier not in modules or (modules[identifier].in_archive and not archive):
                modules[identifier] = Module(number, name, in_archive=archive != 0)
    return modules


def module_ids(ids: list[bytes] | None) -> list[bytes]:
    """Those of relocatable code."""
    return [
        identifier
        for identifier in ids or ()
        if identifier != NOT_RELOCATABLE and not identifier.startswith(DEFINED)
    ]
