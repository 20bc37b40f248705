"""-l and -L: which file a library name stands for."""

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
    from pylink.options.plan import Plan


# What a diagnostic says of the directories of -L when there are none.
NOWHERE = "any directory, as -L names none"

# Directories that host linkers search by default.
HOST_DIRECTORIES = ("/usr/local/lib", "/lib", "/usr/lib", "/lib64", "/usr/lib64")


def find_libraries(
    options: Options,
    whole: Sequence[bool],
    plan: Plan,
    sink: Sink,
    library_path: str | None = None,
) -> list[Input]:
    """The archives that the items of -l stand for; what is not found is an error, reported.

    -lNAME is the first libNAME.so in the directories of -L, then in those of the environment
    variable LIBRARY_PATH, or else the first libNAME.a there. A shared library without device code
    is ignored. -l:NAME is the first file of that name. `whole` says for each item
    whether all members are asked for; `library_path` counts instead of the variable.
    """
    if not options.library:
        return []
    directories = _directories(options, library_path)
    machine = host_machine(options)
    libraries: list[Input] = []
    for name, all_members in zip(options.library, whole, strict=True):
        file, skipped = _search(name, directories, machine, plan.root)
        # What nvlink overlooks in the first may still be needed. If not, there is a warning later.
        spare = next(filter(_is_archive, skipped), None) if file is None else None
        for other in skipped:
            plan.reads(other, sink)
            if other is not spare:
                from pylink.inputs.archivehost import report_skipped

                report_skipped(other, name, machine, sink, plan.root)
        if spare is not None:
            libraries.append(Input(spare, skipped=name, whole=all_members))
        elif file is None:
            if not (skipped or options.allow_missing_libraries or _is_of_host(name)):
                places = ", ".join(f"'{path}'" for path in directories)
                sink.report(
                    "library-missing",
                    library=name,
                    directories=places or NOWHERE,
                )
        elif file.endswith(".so"):
            libraries += _shared(file, machine, sink)
        else:
            libraries.append(Input(file, whole=all_members))
    if sink.errors:
        sink.stop()
    return libraries


def searched(name: str, options: Options) -> list[str]:
    """The files that the search for a library looks into: those overlooked, and the one found."""
    try:
        file, skipped = _search(name, _directories(options, None), host_machine(options))
    except (OSError, ValueError):
        return []
    return skipped if file is None else [*skipped, file]


def passed_over(options: Options) -> list[Input]:
    """The files that items of -l stand for and that a link takes nothing of.

    Those are shared libraries without device code, and texts in their place.
    """
    files = (file for name in options.library for file in searched(name, options)[-1:])
    return [Input(file) for file in dict.fromkeys(files) if file.endswith(".so")]


def find_missing(options: Options) -> list[Diagnostic]:
    """Hints on the libraries of which no directory has a file, except for those of the system."""
    from pylink.diagnostics.record import note

    places = ", ".join(f"'{path}'" for path in _directories(options, None)) or NOWHERE
    return [
        note("library-not-found", library=name, directories=places)
        for name in dict.fromkeys(options.library)
        if not (searched(name, options) or _is_of_host(name) or SYSTEM_LIBRARY in name)
    ]


def find_hidden(options: Options) -> Iterator[tuple[str, str, str]]:
    """Files of the name of a library that the search does not reach.

    Each comes as the item of -l, the file that the search takes, and the other file.
    """
    directories = _directories(options, None)
    for name in dict.fromkeys(options.library):
        searched_in = searched(name, options)
        names = [name[1:]] if name.startswith(":") else [f"lib{name}.so", f"lib{name}.a"]
        files = (f"{folder.rstrip('/')}/{file}" for file in names for folder in directories)
        for file in dict.fromkeys(files):
            if searched_in and file not in searched_in and os.path.exists(file):
                yield name, searched_in[-1], file


def _directories(options: Options, library_path: str | None) -> list[str]:
    if library_path is None:
        library_path = os.environ.get("LIBRARY_PATH", "")
    return [*options.library_path, *(path for path in library_path.split(":") if path)]


def _search(
    name: str, directories: Sequence[str], machine: int, root: str = ""
) -> tuple[str | None, list[str]]:
    """The file for a name, and the archives before it that are none for the host."""
    skipped: list[str] = []
    folders = [directory.rstrip("/") for directory in directories]
    exact = name[1:] if name.startswith(":") else f"lib{name}.so"
    for folder in folders:
        file = f"{folder}/{exact}"
        if os.path.exists(file):
            return file, skipped
    for folder in [] if name.startswith(":") else folders:
        file = f"{folder}/lib{name}.a"
        if not os.path.exists(file):
            continue
        from pylink.inputs.archivehost import is_for_host

        if is_for_host(file, machine, root):
            return file, skipped
        skipped.append(file)
    return None, skipped


def _shared(file: str, machine: int, sink: Sink) -> list[Input]:
    """The shared library as an input, if it has device code; of no other is more than that read."""
    from pylink.inputs.libraryfile import probe

    library, header = probe(file, sink)
    if library is None or header[MACHINE] != machine.to_bytes(2, "little"):
        return []
    return [Input(file, None if library.open else header, library=library)]


def _is_archive(file: str) -> bool:
    from pylink.files.reading import Incoming

    try:
        with Incoming(file, pipes=False) as stream:
            return stream.read(2) == b"!<"
    except OSError:
        return False


def _is_of_host(name: str) -> bool:
    """Whether the host's linker knows the library without -L, such as -lm and -lpthread."""
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
