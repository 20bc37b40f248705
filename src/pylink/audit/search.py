"""Finds the libraries that a file needs as the loader does, but only in allowed directories.

Allowed are the directories of files that the user named, those of -L, and all directories below
them. RPATH and RUNPATH are followed into allowed directories; other paths are only listed. With
`is_system` all directories are allowed.
"""

from __future__ import annotations

import os
import stat

from pylink.facts.elf import EM_AARCH64, EM_X86_64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.audit.model import LinkedFile

# Directories that loaders search last, and the directory names of Debian's layout by machine.
_DEFAULTS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_TRIPLES = {EM_X86_64: "x86_64-linux-gnu", EM_AARCH64: "aarch64-linux-gnu"}


class Finder:
    """Finds libraries; `directories` are those of -L.

    Without `is_system`, only these directories and those of `named_paths` are read, and directories
    below them. `not_looked_at` has, by path that may not be read or has a variable other than
    $ORIGIN, the path of the first file that names it.
    """

    def __init__(
        self, named_paths: Iterable[str], directories: Sequence[str], *, is_system: bool = False
    ) -> None:
        self._directories = [os.path.abspath(directory) for directory in directories]
        self._file_directories = list(
            dict.fromkeys(os.path.dirname(os.path.abspath(p)) for p in named_paths)
        )
        allowed = [*self._directories, *self._file_directories]
        self._allowed = {os.path.realpath(directory) for directory in allowed}
        self._is_system = is_system
        self.not_looked_at: dict[str, str] = {}

    def candidates(self, needed: str, chain: Sequence[LinkedFile]) -> list[str]:
        """Return the allowed regular files that a loader would try for a name, in its order.

        The directories of -L stand in place of LD_LIBRARY_PATH, and those of named files follow
        RUNPATH. `chain` has the file that needs the library, the file that loaded that file, and so
        on.
        """
        file = chain[0]
        if "/" in needed:
            paths = [os.path.abspath(needed)]
        else:
            directories: list[str] = []
            if not file.runpath:
                for loader in chain:
                    if not loader.runpath:
                        directories += self._expand(loader.rpath, loader)
            directories += self._directories
            directories += self._expand(file.runpath, file)
            directories += self._file_directories
            if self._is_system:
                triple = _TRIPLES.get(file.machine)
                if triple:
                    directories += [f"/lib/{triple}", f"/usr/lib/{triple}"]
                directories += _DEFAULTS
            paths = [os.path.join(directory, needed) for directory in dict.fromkeys(directories)]
        return [path for path in paths if self._may_load(path, file)]

    def _expand(self, paths: Iterable[str], file: LinkedFile) -> list[str]:
        """Return the directories as absolute paths, with $ORIGIN replaced.

        Directories with other variables are only added to `not_looked_at`.
        """
        origin = os.path.dirname(file.path)
        expanded = []
        for path in paths:
            full_path = path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
            if "$" in full_path.replace(origin, ""):
                self.not_looked_at.setdefault(full_path, file.path)
            else:
                expanded.append(os.path.abspath(full_path))
        return expanded

    def _may_load(self, path: str, file: LinkedFile) -> bool:
        """Return whether this is a regular file in an allowed directory.

        A directory that is not allowed is added to `not_looked_at`, as named by `file`. If a
        symbolic link leads out of the allowed directories, its target is added.
        """
        directory = os.path.dirname(path)
        if not self._is_allowed(os.path.realpath(directory)):
            self.not_looked_at.setdefault(directory, file.path)
            return False
        real_path = os.path.realpath(path)
        if not self._is_allowed(os.path.dirname(real_path)):
            self.not_looked_at.setdefault(real_path, file.path)
            return False
        try:
            return stat.S_ISREG(os.stat(real_path).st_mode)
        except (OSError, ValueError):
            return False

    def _is_allowed(self, directory: str) -> bool:
        """Return whether a directory is an allowed one or below one."""
        if self._is_system:
            return True
        while directory not in self._allowed:
            parent = os.path.dirname(directory)
            if parent == directory:
                return False
            directory = parent
        return True
