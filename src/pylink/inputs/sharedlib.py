"""Shared libraries of the host with relocatable device code: reads them and chooses modules.

Each module of such code (one per source file) has an id, which appears in two symbols:

    __cudaRegisterLinkedBinary<ID>  called at program start, defined by the file that links the code
    __fatbinwrap<ID>                the code; this symbol is called the module's wrapper

An id is open if the library does not define the first symbol: its code is not linked yet, and this
link takes it. An id is closed if the library was device-linked itself, with its code. A library
that only has such a device link, of modules in other libraries, has closed ids and no code.
docs/shared-libraries.md has the rules, tests/differential/test_shared_programs.py checks them.
"""

from __future__ import annotations

import os

from pylink._native import sharedlibs
from pylink.facts.inputkinds import HOST
from pylink.facts.picknumbers import Demand, DynamicKind, LibraryState
from pylink.inputs.kinds import ELF_MAGIC, SYSTEM_LIBRARY
from pylink.inputs.registration import Module, find_contained, find_losses, report_losses
from pylink.inputs.sources import Library
from pylink.options.plan import identity
from pylink.rowformats import DYNAMIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from mmap import mmap

    from pylink.diagnostics import Sink
    from pylink.inputs.contents import DeviceContents
    from pylink.inputs.sources import Source, Sources
    from pylink.options.plan import Identity
    from pylink.phases.init import Job

DAMAGE = {
    LibraryState.BAD_SYMBOLS: "its dynamic symbols lie outside the file",
    LibraryState.BAD_NAME: "the name of a dynamic symbol lies outside the string table",
}

# Entries of `__nv_module_id` that are not ids of modules: a fixed word for each module that is not
# relocatable, and this prefix of an id for each registration function of a device link.
NOT_RELOCATABLE = b"__NV_MODULE_ID"
DEFINED = b"def "
# This follows DEFINED for a module that the file registers only if it has the module's host code.
LENT = b"lend "


def read_library(
    data: bytes | mmap, offset: int, size: int, name: str, sink: Sink
) -> Library | None:
    """Return what a library's dynamic symbols say of its device code.

    None if it has neither relocatable code nor a device link. Damage is reported, and gives None.
    """
    state, rows, has_runtime = sharedlibs.find_symbols(data, offset, size)
    if state == LibraryState.NO_CODE:
        return None
    if state in DAMAGE:
        sink.report("host-format", file=name, reason=DAMAGE[state])
        return None
    library = Library(name)
    library.has_runtime = has_runtime
    for kind, interposable, start, length, _ in DYNAMIC.iter_unpack(rows):
        text = data[offset + start : offset + start + length]
        if kind == DynamicKind.OPEN:
            library.open[text] = None
        elif kind == DynamicKind.CLOSED:
            library.closed[text] = None
            if interposable:
                library.interposable.add(text)
        elif kind == DynamicKind.WRAPPER:
            library.wrappers.add(text)
        elif kind == DynamicKind.MODULE:
            library.contained.add(text)
        else:
            library.anchor = text
    if not library.contained:
        # Without `__nv_module_id`, these symbols still show which modules the file has.
        library.contained = library.wrappers | library.interposable
    return library


class Libraries:
    """The shared libraries of a link that have device code.

    `libraries` has all of them in the order of the inputs, and `registered` the ids of the modules
    that the link registers. If a library does not export the wrapper (the symbol of the code) of a
    linked module, `anchors` maps the module's id to a function that it does export, or to "".

    Borrowed code is linked here and registered by another file. `lent` has the ids of borrowed
    modules whose wrapper a library exports: a constructor in the output registers this wrapper with
    the output's image, too. `optional` has ids of modules in archives, which are registered here
    only if the host linker takes the member. Kernels of the sources in `borrowed` are not roots.
    `copied` maps sources whose variables are also in the image of another file to that file.
    `written` has patterns for the variables that host code of the libraries names; None if they are
    not known.
    """

    __slots__ = (
        "anchors", "borrowed", "copied", "lent", "libraries", "optional", "registered", "written",
    )  # fmt: skip

    def __init__(self) -> None:
        self.libraries: list[Library] = []
        self.registered: set[bytes] = set()
        self.anchors: dict[str, str] = {}
        self.lent: list[str] = []
        self.optional: set[str] = set()
        self.borrowed: set[int] = set()
        self.copied: dict[int, str] = {}
        self.written: list[bytes] | None = None

    def lenders(self) -> dict[Library, set[bytes]]:
        """Return the ids of the modules that this link can borrow, by library in order.

        Another image registers each of them, and this link does not. Each file counts once.
        """
        owned = {identifier for library in self.libraries for identifier in library.closed}
        lenders: dict[Library, set[bytes]] = {}
        for library in self._distinct_libraries():
            ids = {
                identifier
                for identifier in library.contained
                if identifier not in self.registered
                and (identifier not in library.open or identifier in owned)
            }
            if ids:
                lenders[library] = ids
        return lenders

    def add(
        self, source: Source, library: Library | None, sources_before: int, sink: Sink
    ) -> Library | None:
        """Add a shared library and return it; None if it has no code that the link may take.

        It is read from `source`, unless `library` describes it. `sources_before` is the number of
        sources in front of it.
        """
        if library is None and source.arena.startswith(ELF_MAGIC, source.offset):
            library = read_library(source.arena, source.offset, source.size, source.name, sink)
            if library is not None:
                library.source = source
        if library is None:
            return None
        library.sources_before = sources_before
        self.libraries.append(library)
        return library if library.open else None

    def choose_containers(
        self, job: Job, sources: Sources, contents: DeviceContents, sink: Sink
    ) -> dict[int, set[int]]:
        """Return the containers to link, by source number; set `registered` and `optional`.

        Open modules (those whose registration the library does not define) are linked, unless an
        object or archive (`static`) has the module, too, or another library defines its
        registration: each module is registered once. The first of two equal ones counts.
        """
        static = _static_modules(job, sources, contents)
        registered = set(static)
        owned = {identifier for library in self.libraries for identifier in library.closed}
        linked: dict[int, set[int]] = {}
        for source, library in sources.libraries.items():
            ids = module_ids(contents.ids(source))
            containers = contents.container_count(source)
            if len(ids) != containers:
                sink.report(
                    "library-ids", file=sources.names[source], ids=len(ids), containers=containers
                )
            library.modules = len(ids)
            container_names = {
                identifier: number
                for number, identifier in enumerate(ids)
                if identifier in library.open
                and identifier not in registered
                and identifier not in owned
            }
            registered |= set(container_names)
            contents.restrict(source, list(container_names))
            linked[source] = set(container_names.values())
            if container_names:
                self._report_unusable(library, list(container_names), sink)
        self.registered = registered
        libraries = self._distinct_libraries()
        optional = self._find_optional(job, static, libraries, contents)
        chosen_ids = registered - set(static)
        losses = find_losses(
            static, chosen_ids, libraries, is_shared=job.options.shared, optional=optional
        )
        if losses:
            report_losses(losses, static, libraries, sink, is_shared=job.options.shared)
        return linked

    def _find_optional(
        self,
        job: Job,
        static: dict[bytes, Module],
        libraries: Sequence[Library],
        contents: DeviceContents,
    ) -> set[bytes]:
        """Find the modules of archives that a library registers, too, if the output is shared.

        The host linker may omit the archive's member if the library has all its symbols. So the
        output registers such a module only if it contains the member. Otherwise a constructor of
        the output registers the library's wrapper with the output's image. Sets `optional`,
        `copied` and `borrowed`. `static` has the modules of objects and archives, by id.
        """
        if not job.options.shared or not job.executable:
            return set()
        optional = {
            identifier
            for identifier, module in static.items()
            if module.in_archive
            and any(_registers_itself(library, identifier) for library in libraries)
        }
        contained = find_contained(static, libraries) if optional else set()
        has_runtime = not job.options.keep_system_libraries
        self.optional = {os.fsdecode(identifier) for identifier in optional}
        for number in {static[identifier].number for identifier in optional}:
            ids = set(module_ids(contents.ids(number)))
            # The device runtime is linked into each image that needs it, so it is not borrowed.
            if has_runtime and SYSTEM_LIBRARY in contents.sources.names[number]:
                continue
            self.copied[number] = self.owner(next(iter(ids & optional)))
            if ids <= optional - contained:
                self.borrowed.add(number)
        return optional

    def owner(self, identifier: bytes) -> str:
        """Return the file of the first library whose image registers the module."""
        return next(
            library.file for library in self.libraries if _registers_itself(library, identifier)
        )

    def _distinct_libraries(self) -> list[Library]:
        """Return the libraries, each file once: the host linker ignores repeated ones."""
        distinct: dict[Identity | str, Library] = {}
        for library in self.libraries:
            distinct.setdefault(identity(library.file) or library.file, library)
        return list(distinct.values())

    def _report_unusable(self, library: Library, ids: list[bytes], sink: Sink) -> None:
        """Report what keeps a program from using the library's modules `ids`; sets `anchors`."""
        if library.has_runtime:
            sink.report("library-runtime", file=library.file)
        for identifier in ids:
            if identifier in library.wrappers:
                continue
            if library.anchor is None:
                sink.report("library-hidden", file=library.file, id=os.fsdecode(identifier))
            self.anchors[os.fsdecode(identifier)] = os.fsdecode(library.anchor or b"")


def _static_modules(job: Job, sources: Sources, contents: DeviceContents) -> dict[bytes, Module]:
    """Return the modules that the program registers from objects and archives, by id.

    A module in both is that of the object: the host program contains every object, but only those
    members of archives that no library replaces.
    """
    modules: dict[bytes, Module] = {}
    for number, kind in enumerate(sources.kinds):
        if (
            kind != HOST
            or sources.demands[number] == Demand.TOGETHER
            or not contents.container_count(number)
        ):
            continue
        archive = sources.group(number)
        name = job.inputs[archive - 1].name if archive else sources.names[number]
        for identifier in module_ids(contents.ids(number)):
            if identifier not in modules or (modules[identifier].in_archive and not archive):
                modules[identifier] = Module(number, name, in_archive=archive != 0)
    return modules


def _registers_itself(library: Library, identifier: bytes) -> bool:
    """Return whether the library registers the module itself, maybe by a hidden function."""
    return identifier in library.closed or (
        identifier in library.contained and identifier not in library.open
    )


def module_ids(ids: list[bytes] | None) -> list[bytes]:
    """Return the ids of relocatable modules among the entries of `__nv_module_id`."""
    return [
        identifier
        for identifier in ids or ()
        if identifier != NOT_RELOCATABLE and not identifier.startswith(DEFINED)
    ]
