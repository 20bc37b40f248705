"""The files that the loader would load into a process, their order, and the scopes of names.

Order and scopes are those of glibc: the program and the libraries that it needs, breadth first, are
the global scope. A plugin and its further libraries are loaded later. They look up names in the
global scope first, then in their own; with RTLD_GLOBAL they become part of the global scope.
Functions that register modules run in the dependencies first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from pylink.audit.linkedfile import NotLinked, read_header, read_linked_file
from pylink.diagnostics.errors import reason_of
from pylink.facts.elf import ET_REL
from pylink.inputs.archiveformat import MAGIC, THIN_MAGIC
from pylink.size.sources import FileSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.audit.model import LinkedFile
    from pylink.audit.search import Finder

_MOST_FILES = 1 << 14  # most files that one process may load; a further one raises NotLinked


@dataclass(frozen=True)
class Plugin:
    """A file that is opened at run time, with RTLD_GLOBAL or RTLD_LOCAL."""

    path: str
    is_global: bool


@dataclass
class Group:
    """The files of the program's start or of one dlopen.

    `members` are all files of its scope, breadth first. `loaded` are those that no earlier group
    loaded, in the order in which they register. `is_global` says whether later files find the names
    of the members, too.
    """

    members: list[LinkedFile]
    loaded: list[LinkedFile]
    is_global: bool


@dataclass
class Process:
    """The files that a process loads, as far as found.

    * `program`: the program, or the library that was named in its place; None if none was.
    * `missing`: by name of a library that was not found, the path of the first file that needs it.
    * `skipped`: by path of a file that cannot be loaded, the reason.
    """

    program: LinkedFile | None = None
    groups: list[Group] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def files(self) -> list[LinkedFile]:
        """All files, each once: groups in order, the files of each breadth first."""
        return [file for group in self.groups for file in group.members if file in group.loaded]


class Loader:
    """Finds and reads the files that the system's loader would load, each once."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._files: dict[tuple[int, int], LinkedFile] = {}  # by device and inode
        self._names: dict[str, LinkedFile] = {}  # loaded files by name and by soname
        # By file: the file that needed it first (None for a named one), and the libraries that it
        # needs and that were found.
        self._loaders: dict[LinkedFile, LinkedFile | None] = {}
        self._libraries: dict[LinkedFile, list[LinkedFile]] = {}
        self._machine: int | None = None  # e_machine of the first file
        self.process = Process()

    def start(self, path: str) -> None:
        """Load the program, or a library in its place, and the libraries that it needs."""
        self.load(path, is_global=True)
        self.process.program = self.process.groups[0].members[0]

    def load(self, path: str, *, is_global: bool) -> None:
        """Load a file and the libraries that it needs; OSError or NotLinked for a bad file."""
        earlier_files = set(self._loaders)
        root = self._read_file(path)
        self._loaders.setdefault(root, None)
        members = [root]
        seen = {root}
        for file in members:
            for needed in self._dependencies(file):
                if needed not in seen:
                    seen.add(needed)
                    members.append(needed)
        ordered = self._order_of_initialization(members)
        loaded = [file for file in ordered if file not in earlier_files]
        self.process.groups.append(Group(members, loaded, is_global))

    def _read_file(self, path: str) -> LinkedFile:
        """Return the file at a path; it is read only once, even if it has several paths."""
        source = FileSource(path)
        try:
            status = os.stat(path)
            key = status.st_dev, status.st_ino
            if key not in self._files:
                if len(self._files) >= _MOST_FILES:
                    raise NotLinked(f"more than {_MOST_FILES} files would be loaded")
                file = read_linked_file(source, os.path.abspath(path))
                if self._machine is None:
                    self._machine = file.machine
                elif file.machine != self._machine:
                    raise NotLinked("it is for another machine than the first file")
                self._files[key] = file
                for name in (os.path.basename(path), file.soname):
                    if name:
                        self._names.setdefault(name, file)
            return self._files[key]
        finally:
            source.close()

    def _dependencies(self, file: LinkedFile) -> list[LinkedFile]:
        """Return the libraries that a file needs and that were found, in order."""
        if file not in self._libraries:
            libraries = []
            for name in file.needed:
                library = self._names.get(name) or self._find_library(name, file)
                if library is None:
                    self.process.missing.setdefault(name, file.path)
                elif library is not file:
                    libraries.append(library)
            self._libraries[file] = list(dict.fromkeys(libraries))
        return self._libraries[file]

    def _find_library(self, name: str, file: LinkedFile) -> LinkedFile | None:
        """Return the library that the loader would load by a name for a file; None if missing."""
        for path in self._finder.candidates(name, list(self._chain_of_loaders(file))):
            try:
                library = self._read_file(path)
            except NotLinked as error:
                # The loader skips a file for another machine.
                self.process.skipped.setdefault(path, str(error))
                continue
            except OSError as error:
                self.process.skipped.setdefault(path, reason_of(error))
                continue
            self._names.setdefault(name, library)
            self._loaders.setdefault(library, file)
            return library
        return None

    def _chain_of_loaders(self, file: LinkedFile) -> Iterable[LinkedFile]:
        """Yield a file, the file that needed it first, the one that needed that one, and so on."""
        current: LinkedFile | None = file
        seen: set[LinkedFile] = set()
        while current is not None and current not in seen:
            seen.add(current)
            yield current
            current = self._loaders.get(current)

    def _order_of_initialization(self, members: list[LinkedFile]) -> list[LinkedFile]:
        """Return the members as they are initialized: the last first, but after what it needs."""
        ordered: dict[LinkedFile, None] = {}
        entered: set[LinkedFile] = set()
        for start in reversed(members):
            stack = [(start, iter(self._dependencies(start)))] if start not in entered else []
            entered.add(start)
            while stack:
                file, dependencies = stack[-1]
                dependency = next((item for item in dependencies if item not in entered), None)
                if dependency is None:
                    ordered[file] = None
                    stack.pop()
                else:
                    entered.add(dependency)
                    stack.append((dependency, iter(self._dependencies(dependency))))
        return list(ordered)


def is_object(path: str) -> bool:
    """Return whether a file is a relocatable object or an archive; OSError if it cannot be read."""
    source = FileSource(path)
    try:
        if source.read(0, len(MAGIC)) in (MAGIC, THIN_MAGIC):
            return True
        kind, _ = read_header(source)
        return kind == ET_REL
    except NotLinked:
        return False
    finally:
        source.close()
