"""The model of an audited program or shared library: its device code and needed libraries."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property

from pylink.facts.fatbinentries import WRAPPER_PREFIX


@dataclass(frozen=True)
class Entry:
    """A piece of device code in a container.

    `kind` is one of EntryKind, and `sm` the SM number. `flags` are those of the entry's header, and
    `size` is the number of bytes after that header in the file.
    """

    kind: int
    sm: int
    flags: int
    size: int


@dataclass(frozen=True)
class Container:
    """A fat binary in a file, from offset `start` to `end`."""

    start: int
    end: int
    entries: tuple[Entry, ...]


@dataclass(eq=False)
class LinkedFile:
    """A program or shared library; `machine` is its e_machine.

    A module is the relocatable device code of one source file. When a file is loaded, the host code
    of each module calls a function that registers the module. A file whose link made an image of
    modules defines the functions of these modules: it answers their calls.

    * `is_program`: it has the type ET_EXEC, an interpreter, or the flag DF_1_PIE.
    * `needed`, `soname`, `rpath`, `runpath`: from the dynamic segment: names of libraries, its own
      name, and directories to search.
    * `is_symbolic`: its references use its own definitions (-Bsymbolic).
    * `defined`, `undefined`: names of global dynamic symbols.
    * `functions`: those names in `defined` that are of functions.
    * `calls`: ids of the modules whose host code it contains, in the order in which they register.
      The order is unknown in a file without `__nv_module_id`.
    * `answers`: ids of the modules in its image.
    * `self_bound`: ids for which its calls always reach its own image.
    * `needs`: ids of modules whose fat binaries its image refers to in other files.
    * `images`: fat binaries of linked code, in the section `.nv_fatbin`.
    * `modules`: fat binaries of relocatable code, in the section `__nv_relfatbin`.
    * `has_sections`: the file has readable section headers.
    * `module_count`: number of `modules`, -1 without a section for them.
    * `faults`: messages about parts that could not be read.
    """

    path: str
    machine: int
    is_program: bool
    needed: list[str] = field(default_factory=list)
    soname: str = ""
    rpath: list[str] = field(default_factory=list)
    runpath: list[str] = field(default_factory=list)
    is_symbolic: bool = False
    defined: set[bytes] = field(default_factory=set)
    functions: set[bytes] = field(default_factory=set)
    undefined: set[bytes] = field(default_factory=set)
    self_bound: set[bytes] = field(default_factory=set)
    calls: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    needs: set[bytes] = field(default_factory=set)
    images: list[Container] = field(default_factory=list)
    modules: list[Container] = field(default_factory=list)
    has_sections: bool = True
    module_count: int = -1
    faults: list[str] = field(default_factory=list)

    def add_fault(self, fault: str) -> None:
        """Record a fault; a repeated one counts once."""
        if fault not in self.faults:
            self.faults.append(fault)

    @property
    def display_path(self) -> str:
        """The path for messages: relative if the file is below the working directory."""
        return (
            os.path.relpath(self.path) if self.path.startswith(_working_directory()) else self.path
        )

    @cached_property
    def defined_wrappers(self) -> set[bytes]:
        """The ids of modules whose fat binaries this file exports."""
        return set(ids_in_names(self.defined, WRAPPER_PREFIX))

    @property
    def has_device_code(self) -> bool:
        return bool(self.images or self.modules or self.calls or self.answers)


def _working_directory() -> str:
    """Return the working directory with a separator at its end."""
    try:
        return os.path.join(os.getcwd(), "")
    except OSError:
        return "\0"  # no path begins with this


def ids_in_names(names: set[bytes], prefix: bytes) -> list[bytes]:
    """Return what follows the prefix in names that have it: ids of modules, sorted."""
    return sorted(name[len(prefix) :] for name in names if name.startswith(prefix))
