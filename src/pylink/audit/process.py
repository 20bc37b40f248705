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
from pylink.size.sources import FileSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.audit.linkedfile import LinkedFile
    from pylink.audit.search import Finder

_MOST_FILES = 1 << 14


@dataclass(frozen=True)
class Plugin:
    """A file that is opened at run time, with RTLD_GLOBAL or RTLD_LOCAL."""

    path: str
    is_global: bool


@dataclass
class Group:
    """The files of the program's start or of one dlopen.

    `members` are all files of its scope, breadth first. `loaded` are those that no earlier group
    loaded, in the order in which they register.
    """

    members: list[LinkedFile]
    loaded: list[LinkedFile]
    is_global: bool


@dataclass
class Process:
    """All files that were found. `program` is the program, if one was named.

    `missing` maps names of libraries that no allowed directory has to the files that need them.
    `skipped` maps paths of files that cannot be loaded to the reason.
    """

    program: LinkedFile | None = None
    groups: list[Group] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def files(self) -> list[LinkedFile]:
        return [file for group in self.groups for file in group.members if file in group.loaded]


class Loader:
    """Loads files like the loader, each once."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._files: dict[tuple[int, int], LinkedFile] = {}
        self._names: dict[str, LinkedFile] = {}
        self._loaders: dict[LinkedFile, LinkedFile | None] = {}
        self._needs: dict[LinkedFile, list[LinkedFile]] = {}
        self._machine: int | None = None
        self.process = Process()

    def start(self, path: str) -> None:
        """Load the program, or a library in its place, and the libraries that it needs."""
        self.load(path, is_global=True)
        self.process.program = self.process.groups[0].members[0]

    def load(self, path: str, *, is_global: bool) -> None:
        """Load a file and the libraries that it needs; OSError, NotLinked if it is unreadable."""
        earlier_files = set(self._loaders)
        root = self._read(path)
        self._loaders.setdefault(root, None)
        members = [root]
        seen = {root}
        for file in members:
            for needed in self._dependencies(file):
                if needed not in seen:
                    seen.add(needed)
                    members.append(needed)
        loaded = [file for file in self._order(members) if file not in earlier_files]
        self.process.groups.append(Group(members, loaded, is_global))

    def _read(self, path: str) -> LinkedFile:
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
        if file not in self._needs:
            libraries = []
            for name in file.needed:
                library = self._names.get(name) or self._search(name, file)
                if library is None:
                    self.process.missing.setdefault(name, file.path)
                elif library is not file:
                    libraries.append(library)
            self._needs[file] = list(dict.fromkeys(libraries))
        return self._needs[file]

    def _search(self, name: str, file: LinkedFile) -> LinkedFile | None:
        for path in self._finder.candidates(name, list(self._chain(file))):
            try:
                library = self._read(path)
            except NotLinked as error:
                # The loader skips a file for another machine.
                self.process.skipped.setdefault(path, str(error))
                continue
            except OSError as error:
                self.process.skipped.setdefault(path, error.strerror or str(error))
                continue
            self._names.setdefault(name, library)
            self._loaders.setdefault(library, file)
            return library
        return None

    def _chain(self, file: LinkedFile) -> Iterable[LinkedFile]:
        link: LinkedFile | None = file
        seen: set[LinkedFile] = set()
        while link is not None and link not in seen:
            seen.add(link)
            yield link
            link = self._loaders.get(link)

    def _order(self, members: list[LinkedFile]) -> list[LinkedFile]:
        """The order of initialization: depth first from the last file, dependencies first."""
        ordered: dict[LinkedFile, None] = {}
        entered: set[LinkedFile] = set()
        for start in reversed(members):
            stack = [(start, iter(self._dependencies(start)))] if start not in entered else []
            entered.add(start)
            while stack:
                file, dependencies = stack[-1]
                following = next((path for path in dependencies if path not in entered), None)
                if following is None:
                    ordered[file] = None
                    stack.pop()
                else:
                    entered.add(following)
                    stack.append((following, iter(self._dependencies(following))))
        return list(ordered)


def is_object(path: str) -> bool:
    """Return whether a file is a relocatable object or an archive; OSError if it cannot be read."""
    source = FileSource(path)
    try:
        if source.read(0, 8) in (b"!<arch>\n", b"!<thin>\n"):
            return True
        return read_header(source)[0] == 1
    except NotLinked:
        return False
    finally:
        source.close()
