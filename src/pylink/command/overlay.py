"""`pylink toolkit-overlay`: a CUDA toolkit in which pylink is the device linker.

nvcc and clang look for `nvlink` beside themselves or in the toolkit that they are given, not in
PATH. An overlay is a directory of symbolic links to the parts of a real toolkit, except for
`bin/nvlink`, which is a link to the program `pylink` or a script that starts it. A file beside
`bin/nvlink` has the release of the toolkit, whose nvlink pylink then follows. The toolkit itself
stays unchanged.

If the program `pylink` is a native one, `bin/nvcc` is a copy of it. Under that name it runs
`pylink dlink` for device-link steps, and the toolkit's nvcc for everything else
(`src/_native/launcher/nvcc.h`). It is not a link, so that a build which resolves links still finds
the overlay around it. `bin/fatbinary` is a copy, too. It translates the options that CMake writes
for clang, and runs the toolkit's fatbinary.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress

from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import printable, write
from pylink.facts.releases import release_named
from pylink.files.overlayfiles import NOTES_FILE, RELEASE_FILE, SERVE_FILE, read_release
from pylink.inputs.kinds import ELF_MAGIC
from pylink.packages.sites import add_sites
from pylink.subtools.programs import tool_version
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Files in `bin` of a toolkit: an overlay requires nvcc and its profile, and replaces nvlink. An
# nvcc without its profile beside it is a script that starts the nvcc of another directory, which
# uses the linker there.
COMPILER = "nvcc"
PROFILE = "nvcc.profile"
LINKER = "nvlink"
# By program of the toolkit that a copy of pylink replaces: the name, in the overlay, of the link to
# the toolkit's own program, which the copy runs.
PACKER = "fatbinary"
REPLACED = {COMPILER: "toolkit-nvcc", PACKER: "toolkit-fatbinary"}
# The directory of libraries in an overlay.
LIBRARIES = "lib64"

# The program, the script beside it, and the start of that script's second line in an editable
# install.
PROGRAM = "pylink"
SCRIPT = "pylink-python"
PATH_PREFIX = b"# pylink is in "

# A file with versions, which toolkits of installers have and those of wheels lack, and the key of
# nvcc in it.
VERSION_FILE = "version.json"
COMPILER_PACKAGE = "cuda_nvcc"
# Most bytes of an interpreter's path in the first line of a script. Systems truncate longer lines,
# and split them at blanks; so SHELL_LAUNCHER has a longer path, or one with blanks.
LONGEST_INTERPRETER = 120

# The script `nvlink` of an overlay, if there is no native program `pylink` to link to.
LAUNCHER = """\
#!{interpreter}
from pylink.startup.program import run

run()
"""

# The script `nvlink` of an overlay, if its first line cannot hold the path of the interpreter.
SHELL_LAUNCHER = """\
#!/bin/sh
exec {interpreter} -I -c 'import sys; del sys.argv[0]
from pylink.startup.program import run
run()' "${{0%/*}}/nvlink" "$@"
"""


# A line that both scripts have, and a limit of their sizes: an interpreter's path has 4,096 bytes
# at most.
RUN_LINE = b"from pylink.startup.program import run\n"
LONGEST_LAUNCHER = 8192


class OverlayError(Exception):
    """The overlay cannot be created; the text says why."""


def make_overlay(
    directory: str, toolkit: str | None, *, notes: bool = True, serve: bool = False
) -> None:
    """Create an overlay of the CUDA toolkit in `toolkit`; OverlayError if that fails.

    With `notes` its linker prints notes after nvlink's lines; with `serve` it may start a server.
    Without a toolkit the overlay contains only the linker. The directory is complete when it
    appears. An existing overlay or an empty directory is replaced, and kept if that fails; other
    directories are not changed.
    """
    directory = os.path.abspath(directory)
    if toolkit is not None:
        toolkit = os.path.abspath(toolkit)
        _check_toolkit(toolkit, directory)
    if os.path.lexists(directory) and not _may_replace(directory):
        raise OverlayError(f"{directory} exists and is not an overlay: remove it or choose another")
    parent = os.path.dirname(directory)
    try:
        os.makedirs(parent, exist_ok=True)
        unfinished = tempfile.mkdtemp(prefix=".overlay.", dir=parent)
    except OSError as error:
        raise OverlayError(f"cannot write in {parent}: {reason_of(error)}") from error
    try:
        _fill_overlay(unfinished, toolkit, (NOTES_FILE,) * notes + (SERVE_FILE,) * serve)
        os.chmod(unfinished, 0o755)
        _put_in_place(unfinished, directory)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise OverlayError(f"cannot make {directory}: {reason_of(error)}") from error


def _put_in_place(unfinished: str, directory: str) -> None:
    """Rename `unfinished` to `directory`, in place of a directory that exists.

    The replaced directory is removed last, or put back after an error. The name is missing only
    between two renames. A build that runs meanwhile keeps its open files.
    """
    if not os.path.lexists(directory):
        os.rename(unfinished, directory)
        return
    aside = tempfile.mkdtemp(prefix=".overlay.", dir=os.path.dirname(directory))
    replaced = os.path.join(aside, "replaced")
    try:
        os.rename(directory, replaced)
        try:
            os.rename(unfinished, directory)
        except BaseException:
            os.rename(replaced, directory)
            raise
    except BaseException:
        # If the old overlay could not be put back, it stays in `aside`, which is then not empty.
        with suppress(OSError):
            os.rmdir(aside)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _check_toolkit(toolkit: str, directory: str) -> None:
    """Raise `OverlayError` unless `toolkit` is a CUDA toolkit and `directory` is outside of it."""
    for name in (COMPILER, PROFILE):
        if not os.path.exists(os.path.join(toolkit, "bin", name)):
            raise OverlayError(
                f"{toolkit} is not a CUDA toolkit: it has no bin/{name}. Name the directory that "
                "holds bin, include and lib or lib64"
            )
    if os.path.commonpath([directory, toolkit]) == toolkit:
        raise OverlayError(f"{directory} is inside the toolkit: choose a place outside of it")


def _may_replace(directory: str) -> bool:
    """Return whether the directory is empty, or looks like an overlay.

    An overlay has `bin/nvlink`, and otherwise only links and files named like an overlay's own.
    """
    if os.path.islink(directory) or not os.path.isdir(directory):
        return False
    if not os.listdir(directory):
        return True
    linker = os.path.join(directory, "bin", LINKER)
    if not os.path.isfile(linker) and not os.path.islink(linker):
        return False
    others = [os.path.join(directory, name) for name in os.listdir(directory) if name != "bin"]
    binaries = os.path.dirname(linker)
    own_files = [LINKER, RELEASE_FILE, NOTES_FILE, SERVE_FILE]
    own_files += [
        name for name, real in REPLACED.items() if os.path.islink(os.path.join(binaries, real))
    ]
    others += [
        os.path.join(binaries, name) for name in os.listdir(binaries) if name not in own_files
    ]
    libraries = os.path.join(directory, LIBRARIES)
    if libraries in others and not os.path.islink(libraries) and os.path.isdir(libraries):
        others.remove(libraries)
        others += [os.path.join(libraries, name) for name in os.listdir(libraries)]
    # A link bin/nvlink of an overlay leads to the program `pylink`, which may have been
    # removed, so only its name is compared. Elsewhere such a link leads to a file called nvlink.
    if os.path.islink(linker):
        is_own_linker = os.path.basename(os.readlink(linker)) == PROGRAM
    else:
        with open(linker, "rb") as file:
            is_own_linker = RUN_LINE in file.read(LONGEST_LAUNCHER)
    return is_own_linker and all(os.path.islink(path) for path in others)


def _fill_overlay(unfinished: str, toolkit: str | None, mark_files: Sequence[str]) -> None:
    """Create the contents of an overlay in the directory `unfinished`.

    `mark_files` are the names of empty files to create beside the linker.
    """
    binaries = os.path.join(unfinished, "bin")
    os.mkdir(binaries)
    launcher = os.path.join(binaries, LINKER)
    program = find_native_program()
    if program is not None:
        os.symlink(program, launcher)
    else:
        with open(launcher, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(launcher_text(sys.executable))
        os.chmod(launcher, 0o755)
    for name in mark_files:
        with open(os.path.join(binaries, name), "w", encoding="ascii"):
            pass  # only the presence of the file matters
    if toolkit is not None:
        _link_toolkit(unfinished, toolkit)
        if program is not None:
            _replace_programs(binaries, program)
        release = find_release(toolkit)
        if release is not None:
            with open(os.path.join(binaries, RELEASE_FILE), "w", encoding="ascii") as stream:
                stream.write(f"{release}\n")


def find_release(toolkit: str) -> str | None:
    """Return the release of a toolkit by its name in `facts/releases.py`, such as 13.2 or 13.2.51.

    An unknown release has the name that a tool or version.json has; None without any. The
    compiler is asked first: the linker may have been replaced, and the file may be older.
    """
    for tool in (COMPILER, LINKER):
        version = tool_version(os.path.join(toolkit, "bin", tool))
        if version is not None:
            row = release_named(version)
            return row.name if row else version
    try:
        with open(os.path.join(toolkit, VERSION_FILE), encoding="utf-8") as stream:
            contents = json.load(stream)
        # Tools have a version of their own, whose patch level differs from the toolkit's.
        version = contents.get(COMPILER_PACKAGE, {}).get("version")
        row = release_named(version) if version else None
        match = re.match(r"[0-9]+\.[0-9]+", contents["cuda"]["version"], re.ASCII)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if row is not None:
        return row.name
    return match[0] if match else None


def _link_toolkit(unfinished: str, toolkit: str) -> None:
    """Create links to everything in the toolkit except for its linker.

    Files of `bin` that have the name of an overlay's own file are omitted, too. If the toolkit has
    no lib64, the overlay gets one, with links to the libraries in lib.
    """
    binaries = os.path.join(unfinished, "bin")
    for name in os.listdir(toolkit):
        if name != "bin":
            os.symlink(os.path.join(toolkit, name), os.path.join(unfinished, name))
    # nvcc uses lib64; toolkits from Python packages have only lib.
    lib = os.path.join(toolkit, "lib")
    if not os.path.lexists(os.path.join(unfinished, LIBRARIES)) and os.path.isdir(lib):
        _fill_libraries(os.path.join(unfinished, LIBRARIES), lib)
    replaced_files = (LINKER, RELEASE_FILE, NOTES_FILE, SERVE_FILE, PROGRAM, *REPLACED.values())
    for name in os.listdir(os.path.join(toolkit, "bin")):
        if name not in replaced_files:
            os.symlink(os.path.join(toolkit, "bin", name), os.path.join(binaries, name))


def _replace_programs(binaries: str, program: str) -> None:
    """Put copies of `program` in place of links to the programs of REPLACED; rename these links.

    A link `pylink` to the program is created, too. A copy has the time stamp of the program that it
    replaces, since compiler caches compare it.
    """
    os.symlink(program, os.path.join(binaries, PROGRAM))
    for name, real in REPLACED.items():
        path = os.path.join(binaries, name)
        try:
            status = os.stat(path)
        except OSError:  # not every toolkit has all of them
            continue
        os.rename(path, os.path.join(binaries, real))
        shutil.copyfile(program, path)
        os.chmod(path, 0o755)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _fill_libraries(directory: str, lib: str) -> None:
    """Create `directory` with links to the libraries in `lib`, also under names for host linkers.

    Python packages have only `libcudart.so.13`, but -lcudart makes a host linker look for
    `libcudart.so`.
    """
    os.mkdir(directory)
    names = sorted(os.listdir(lib))
    for name in names:
        os.symlink(os.path.join(lib, name), os.path.join(directory, name))
    for name in names:
        plain, version, _ = name.partition(".so.")
        link = os.path.join(directory, f"{plain}.so")
        if version and not os.path.lexists(link):
            os.symlink(os.path.join(lib, name), link)


def find_native_program() -> str | None:
    """Return the program `pylink` beside this Python; None if there is none that fits.

    It must be a native program that starts this package with this Python.
    """
    directory = os.path.dirname(sys.executable)
    program, script = os.path.join(directory, PROGRAM), os.path.join(directory, SCRIPT)
    try:
        with open(script, "rb") as stream:
            interpreter, place = stream.readline(), stream.readline()
        with open(program, "rb") as stream:
            is_native = stream.read(len(ELF_MAGIC)) == ELF_MAGIC
    except OSError:
        return None
    if not is_native or not _is_this_interpreter(
        os.fsdecode(interpreter[len("#!") :].rstrip(b"\n"))
    ):
        return None
    start, _, source = place.rstrip(b"\n").partition(PATH_PREFIX)
    package_parent = source if not start and source else os.fsencode(_site_packages())
    own_package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return (
        program
        if os.path.realpath(package_parent) == os.path.realpath(os.fsencode(own_package))
        else None
    )


def _site_packages() -> str:
    """Return the directory in which this Python installs packages."""
    add_sites()  # sets the prefix of a virtual environment
    import sysconfig  # reads the prefix when it is loaded

    return sysconfig.get_path("purelib")


def _is_this_interpreter(interpreter: str) -> bool:
    """Return whether this path is the running Python, or a link to it in its directory."""
    try:
        same_file = os.path.samefile(interpreter, sys.executable)
    except OSError:
        return False
    return same_file and os.path.dirname(interpreter) == os.path.dirname(sys.executable)


def launcher_text(interpreter: str) -> str:
    """Return the text of a script that runs as nvlink with this interpreter."""
    if len(os.fsencode(interpreter)) > LONGEST_INTERPRETER or any(map(str.isspace, interpreter)):
        from shlex import quote

        return SHELL_LAUNCHER.format(interpreter=quote(interpreter))
    return LAUNCHER.format(interpreter=f"{interpreter} -I")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink toolkit-overlay",
        description="Create an overlay: a directory of symbolic links to a CUDA toolkit, in which "
        "the device linker is pylink, and nvcc does device-link steps as pylink dlink does. nvcc, "
        "clang and CMake use it like a toolkit. Without --cuda, the directory contains only "
        "bin/nvlink.",
    )
    options.add_argument("directory", metavar="DIR", help="directory to create")
    options.add_argument("--cuda", metavar="PATH", help="CUDA toolkit that contains bin/nvcc")
    options.add_argument(
        "--plain",
        action="store_true",
        help="print only nvlink's messages (default: lines that begin with 'pylink note' follow "
        "them and say what to do)",
    )
    options.add_argument(
        "--serve",
        action="store_true",
        help="start a server at the first link, which ends when idle: small links take less time "
        "(default: only with PYLINK_SERVER=auto)",
    )
    return options


def main(argv: Sequence[str]) -> int:
    """Run the command; the status is 1 if it fails, 2 for wrong arguments, else 0."""
    return run(parser(), argv, _main, (OverlayError,))


def _main(options: argparse.Namespace) -> int:
    make_overlay(options.directory, options.cuda, notes=not options.plain, serve=options.serve)
    write(sys.stdout, report(options.directory, options.cuda, plain=options.plain))
    return 0


def report(directory: str, toolkit: str | None, *, plain: bool) -> str:
    """Return a text about the new overlay, and the next command."""
    binaries = os.path.join(directory, "bin")
    if toolkit is None:
        lines = [f"{directory}/bin/nvlink is pylink"]
        next_command = f"clang++ --cuda-path={directory} ...  (with --cuda PATH, nvcc works, too)"
    else:
        name = f"CUDA {read_release(binaries)}".rstrip()
        lines = [f"{directory} is the {name} toolkit in {toolkit}, with pylink as nvlink"]
        next_command = f"{binaries}/nvcc -arch=sm_90 -rdc=true FILE.cu ... -o PROGRAM"
    if plain:
        lines.append("prints only nvlink's messages")
    else:
        lines.append("'pylink note' lines follow nvlink's messages (--plain: only nvlink's)")
    lines.append(f"next: {next_command}")
    return "".join(f"{printable(line)}\n" for line in lines)
