"""Finds the files for -l in the directories of -L."""

from __future__ import annotations

import os

from pylink.inputs.hostmachine import host_machine
from pylink.inputs.kinds import MACHINE, SYSTEM_LIBRARY
from pylink.options.model import Input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.diagnostics import Diagnostic, Sink
    from pylink.options.model import Options
    from pylink.options.plan import OutputPlan


# The text in place of directories in a diagnostic, if there is no -L.
NO_DIRECTORIES = "any directory, as -L names none"

# Directories that host linkers search by default.
HOST_DIRECTORIES = ("/usr/local/lib", "/lib", "/usr/lib", "/lib64", "/usr/lib64")


def find_libraries(
    options: Options,
    whole_libraries: Sequence[bool],
    plan: OutputPlan,
    sink: Sink,
    library_path: str | None = None,
) -> list[Input]:
    """Find the files for the values of -l; a missing library that is not the host's is reported.

    -lNAME is the first libNAME.so in the directories of -L and then of the environment variable
    LIBRARY_PATH, or else the first libNAME.a there for this host. -l:NAME is the first file of that
    name. A shared library without device code is ignored. `whole_libraries` says for each value of
    -l whether all members are linked; `library_path` replaces the variable.
    """
    if not options.library:
        return []
    directories = _directories(options, library_path)
    machine = host_machine(options)
    libraries: list[Input] = []
    for name, all_members in zip(options.library, whole_libraries, strict=True):
        file, skipped = _search(name, directories, machine, plan.root)
        # The first skipped archive becomes an input, since its members, which nvlink overlooks, may
        # be needed. If they are not, there is a warning later.
        fallback = next(filter(_is_archive, skipped), None) if file is None else None
        for other in skipped:
            plan.check_input(other, sink)
            if other is not fallback:
                from pylink.inputs.archivehost import report_skipped

                report_skipped(other, name, machine, sink, plan.root)
        if fallback is not None:
            libraries.append(Input(fallback, skipped=name, whole_archive=all_members))
        elif file is None:
            if not (skipped or options.allow_missing_libraries or _is_of_host(name)):
                places = ", ".join(f"'{path}'" for path in directories)
                sink.report("library-missing", library=name, directories=places or NO_DIRECTORIES)
        elif file.endswith(".so"):
            libraries += _shared_input(file, machine, sink)
        else:
            libraries.append(Input(file, whole_archive=all_members))
    if sink.errors:
        sink.stop()
    return libraries


def candidate_files(name: str, options: Options) -> list[str]:
    """Return the files that the search for a library considers: skipped ones, then the result."""
    try:
        file, skipped = _search(name, _directories(options, None), host_machine(options))
    except (OSError, ValueError):
        return []
    return skipped if file is None else [*skipped, file]


def ignored_libraries(options: Options) -> list[Input]:
    """Return the files of -l that nvlink ignores: shared libraries, and linker scripts so named."""
    files = (file for name in options.library for file in candidate_files(name, options)[-1:])
    return [Input(file) for file in dict.fromkeys(files) if file.endswith(".so")]


def find_missing(options: Options) -> list[Diagnostic]:
    """Return hints on libraries that no directory has, except for system libraries."""
    from pylink.diagnostics.record import note

    places = ", ".join(f"'{path}'" for path in _directories(options, None)) or NO_DIRECTORIES
    return [
        note("library-not-found", library=name, directories=places)
        for name in dict.fromkeys(options.library)
        if not (candidate_files(name, options) or _is_of_host(name) or SYSTEM_LIBRARY in name)
    ]


def find_hidden(options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield files that have the name of a library, but that the search does not reach.

    They come with the value of -l and the file that the search finds: (value, found, not reached).
    """
    directories = _directories(options, None)
    for name in dict.fromkeys(options.library):
        candidates = candidate_files(name, options)
        names = [name[1:]] if name.startswith(":") else [f"lib{name}.so", f"lib{name}.a"]
        files = (f"{directory.rstrip('/')}/{file}" for file in names for directory in directories)
        for file in dict.fromkeys(files):
            if candidates and file not in candidates and os.path.exists(file):
                yield name, candidates[-1], file


def _directories(options: Options, library_path: str | None) -> list[str]:
    """Return the directories of -L and of LIBRARY_PATH, which `library_path` replaces."""
    if library_path is None:
        library_path = os.environ.get("LIBRARY_PATH", "")
    return [*options.library_path, *(path for path in library_path.split(":") if path)]


def _search(
    name: str, directories: Sequence[str], machine: int, root: str = ""
) -> tuple[str | None, list[str]]:
    """Return the file for a value of -l, or None; also the archives for other hosts in front."""
    skipped: list[str] = []
    directories = [directory.rstrip("/") for directory in directories]
    exact = name[1:] if name.startswith(":") else f"lib{name}.so"
    for directory in directories:
        file = f"{directory}/{exact}"
        if os.path.exists(file):
            return file, skipped
    for directory in [] if name.startswith(":") else directories:
        file = f"{directory}/lib{name}.a"
        if not os.path.exists(file):
            continue
        from pylink.inputs.archivehost import is_for_host

        if is_for_host(file, machine, root):
            return file, skipped
        skipped.append(file)
    return None, skipped


def _shared_input(file: str, machine: int, sink: Sink) -> list[Input]:
    """Return the shared library as an input if it has device code for this machine, else empty."""
    from pylink.inputs.libraryfile import probe

    library, header = probe(file, sink)
    if library is None or header[MACHINE] != machine.to_bytes(2, "little"):
        return []
    return [Input(file, None if library.open else header, library=library)]


def _is_archive(file: str) -> bool:
    """Return whether a file begins like an archive; False if it cannot be read."""
    from pylink.files.reading import Incoming

    try:
        with Incoming(file, pipes=False) as stream:
            return stream.read(2) == b"!<"
    except OSError:
        return False


def _is_of_host(name: str) -> bool:
    """Return whether the host linker finds the library without -L, as -lm and -lpthread."""
    machine = os.uname().machine
    multiarch = [f"{path}/{machine}-linux-gnu" for path in ("/lib", "/usr/lib")]
    for directory in (*multiarch, *HOST_DIRECTORIES):
        try:
            files = os.listdir(directory)
        except OSError:
            continue
        shared = f"lib{name}.so"
        if any(file == shared or file.startswith(shared + ".") for file in files):
            return True
    return False
