"""`pylink toolkit-overlay`: a CUDA toolkit in which pylink is the device linker.

nvcc and clang look for `nvlink` beside themselves or below the toolkit they are given, not on the
search path. An overlay is a directory of symbolic links to the parts of a real toolkit, except for
`bin/nvlink`, which is a link to the program `pylink` or a script that starts it. A file beside it
has the release of the toolkit, which the links follow; the toolkit itself stays as it is.

`bin/nvcc` is a copy of the program, which under that name hands device-link steps to `pylink dlink`
and all else to the toolkit's nvcc (`src/_native/launcher/nvcc.h`). It is not a link, so that a
build which resolves links still finds the overlay around it. `bin/fatbinary` is one, too, and has
the toolkit's fatbinary understand CMake's words for clang.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile

from pylink.command.toolkitrelease import SERVE_FILE
from pylink.diagnostics.nvlink import NOTES_FILE, RELEASE_FILE
from pylink.diagnostics.stream import printable, write
from pylink.facts.releases import release_named
from pylink.packages.sites import add_sites
from pylink.subtools.programs import tool_version
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# What an overlay has to find in `bin` of the toolkit to be of use. A nvcc without its profile
# beside it is a script that starts the one of another directory, with the linker of that.
COMPILER = "nvcc"
PROFILE = "nvcc.profile"
LINKER = "nvlink"
# Programs of the toolkit in whose place ours stands, and what it goes by when ours starts it.
PACKER = "fatbinary"
REPLACED = {COMPILER: "toolkit-nvcc", PACKER: "toolkit-fatbinary"}
LIBRARIES = "lib64"

# The program, the script beside it, and what the second line of that is in an editable install.
PROGRAM = "pylink"
SCRIPT = "pylink-python"
FOLDER = b"# pylink is in "
NATIVE = b"\x7fELF"

# What toolkits of installers, but not those of wheels, say of themselves.
VERSION_FILE = "version.json"
COMPILER_PACKAGE = "cuda_nvcc"  # there
# The kernel reads no more of the first line of a script, and splits it at blanks.
LONGEST_INTERPRETER = 120

# Where there is no program `pylink` to link to.
LAUNCHER = """\
#!{interpreter}
from pylink.startup.program import run

run()
"""

# For an interpreter whose path cannot stand in a first line.
SHELL_LAUNCHER = """\
#!/bin/sh
exec {interpreter} -I -c 'import sys; del sys.argv[0]
from pylink.startup.program import run
run()' "${{0%/*}}/nvlink" "$@"
"""


class OverlayError(Exception):
    """Why there is no overlay, in words for the user."""


def make_overlay(
    directory: str, toolkit: str | None, *, notes: bool = True, serve: bool = False
) -> None:
    """Make `directory` an overlay of the CUDA toolkit in `toolkit`; OverlayError when it cannot be.

    Its linker prints `notes` after nvlink's lines, and may `serve`: start a server. Without a
    toolkit it is one with nothing but the linker. The directory appears atomically. An
    overlay that is there already is replaced; any other directory, unless empty, is left alone.
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
        raise OverlayError(f"cannot write in {parent}: {error.strerror}") from error
    try:
        _fill(unfinished, toolkit, (NOTES_FILE,) * notes + (SERVE_FILE,) * serve)
        os.chmod(unfinished, 0o755)
        if os.path.lexists(directory):
            shutil.rmtree(directory)
        os.rename(unfinished, directory)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise OverlayError(f"cannot make {directory}: {error.strerror}") from error


def _check_toolkit(toolkit: str, directory: str) -> None:
    for name in (COMPILER, PROFILE):
        if not os.path.exists(os.path.join(toolkit, "bin", name)):
            raise OverlayError(
                f"{toolkit} is not a CUDA toolkit: it has no bin/{name}. Name the directory that "
                "holds bin, include and lib or lib64"
            )
    if os.path.commonpath([directory, toolkit]) == toolkit:
        raise OverlayError(f"{directory} is inside the toolkit: choose a place outside of it")


def _may_replace(directory: str) -> bool:
    """Whether the directory is empty, or an overlay: our linker, and links for the rest."""
    if os.path.islink(directory) or not os.path.isdir(directory):
        return False
    if not os.listdir(directory):
        return True
    linker = os.path.join(directory, "bin", LINKER)
    if not os.path.isfile(linker) and not os.path.islink(linker):
        return False
    others = [os.path.join(directory, name) for name in os.listdir(directory) if name != "bin"]
    binaries = os.path.dirname(linker)
    own = [LINKER, RELEASE_FILE, NOTES_FILE, SERVE_FILE]
    own += [name for name, real in REPLACED.items() if os.path.islink(os.path.join(binaries, real))]
    others += [os.path.join(binaries, name) for name in os.listdir(binaries) if name not in own]
    libraries = os.path.join(directory, LIBRARIES)
    if libraries in others and not os.path.islink(libraries) and os.path.isdir(libraries):
        others.remove(libraries)
        others += [os.path.join(libraries, name) for name in os.listdir(libraries)]
    # The program may be gone by now; in a toolkit of links nvlink leads to another nvlink.
    ours = not os.path.islink(linker) or os.path.basename(os.readlink(linker)) == PROGRAM
    return ours and all(os.path.islink(path) for path in others)


def _fill(unfinished: str, toolkit: str | None, marks: Sequence[str]) -> None:
    binaries = os.path.join(unfinished, "bin")
    os.mkdir(binaries)
    launcher = os.path.join(binaries, LINKER)
    program = find_program()
    if program is not None:
        os.symlink(program, launcher)
    else:
        with open(launcher, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(launcher_text(sys.executable))
        os.chmod(launcher, 0o755)
    for name in marks:
        with open(os.path.join(binaries, name), "w", encoding="ascii"):
            pass  # that it is there says all
    if toolkit is not None:
        _link(unfinished, toolkit)
        if program is not None:
            _put_programs(binaries, program)
        release = find_release(toolkit)
        if release is not None:
            with open(os.path.join(binaries, RELEASE_FILE), "w", encoding="ascii") as stream:
                stream.write(f"{release}\n")


def find_release(toolkit: str) -> str | None:
    """What pylink follows in a toolkit, by a name of `facts/releases.py`, such as 13.2 or 13.2.51.

    That of a release without such a name is as the tools have it; None when nothing tells. The
    compiler knows best: the linker may have been replaced, the file come from another release.
    """
    for tool in (COMPILER, LINKER):
        version = tool_version(os.path.join(toolkit, "bin", tool))
        if version is not None:
            row = release_named(version)
            return row.name if row else version
    try:
        with open(os.path.join(toolkit, VERSION_FILE), encoding="utf-8") as stream:
            said_there = json.load(stream)
        # The patch level of a toolkit is not that of its tools, which stand there by themselves.
        version = said_there.get(COMPILER_PACKAGE, {}).get("version")
        row = release_named(version) if version else None
        match = re.match(r"[0-9]+\.[0-9]+", said_there["cuda"]["version"], re.ASCII)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if row is not None:
        return row.name
    return match[0] if match else None


def _link(unfinished: str, toolkit: str) -> None:
    """Links to all of the toolkit but its linker."""
    binaries = os.path.join(unfinished, "bin")
    for name in os.listdir(toolkit):
        if name != "bin":
            os.symlink(os.path.join(toolkit, name), os.path.join(unfinished, name))
    # nvcc asks for lib64; toolkits from Python packages have lib alone.
    lib = os.path.join(toolkit, "lib")
    if not os.path.lexists(os.path.join(unfinished, LIBRARIES)) and os.path.isdir(lib):
        _fill_libraries(os.path.join(unfinished, LIBRARIES), lib)
    own = (LINKER, RELEASE_FILE, NOTES_FILE, SERVE_FILE, PROGRAM, *REPLACED.values())
    for name in os.listdir(os.path.join(toolkit, "bin")):
        if name not in own:
            os.symlink(os.path.join(toolkit, "bin", name), os.path.join(binaries, name))


def _put_programs(binaries: str, program: str) -> None:
    """Our programs in the place of the toolkit's, which get other names; and what does steps.

    Ours have the time of the toolkit's, by which caches of compilers tell what they have.
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
    """Links to the libraries, also under the names that linkers of the host look for.

    Python packages have `libcudart.so.13` alone, and -lcudart is `libcudart.so`.
    """
    os.mkdir(directory)
    names = sorted(os.listdir(lib))
    for name in names:
        os.symlink(os.path.join(lib, name), os.path.join(directory, name))
    for name in names:
        plain, version, _ = name.partition(".so.")
        wanted = os.path.join(directory, f"{plain}.so")
        if version and not os.path.lexists(wanted):
            os.symlink(os.path.join(lib, name), wanted)


def find_program() -> str | None:
    """The program `pylink` beside the interpreter, if it starts this pylink with it."""
    folder = os.path.dirname(sys.executable)
    program, script = os.path.join(folder, PROGRAM), os.path.join(folder, SCRIPT)
    try:
        with open(script, "rb") as stream:
            interpreter, place = stream.readline(), stream.readline()
        with open(program, "rb") as stream:
            is_native = stream.read(len(NATIVE)) == NATIVE
    except OSError:
        return None
    if not is_native or not _is_ours(os.fsdecode(interpreter[len("#!") :].rstrip(b"\n"))):
        return None
    start, _, source = place.rstrip(b"\n").partition(FOLDER)
    start_at = source if not start and source else os.fsencode(_site_packages())
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return program if os.path.realpath(start_at) == os.path.realpath(os.fsencode(own)) else None


def _site_packages() -> str:
    """Where this Python installs packages: of a virtual environment only after `site` has run."""
    add_sites()
    import sysconfig  # which asks for the prefix once, when it is loaded

    return sysconfig.get_path("purelib")


def _is_ours(interpreter: str) -> bool:
    """Whether that is the Python that runs this one, by any of its names in one folder."""
    try:
        same_file = os.path.samefile(interpreter, sys.executable)
    except OSError:
        return False
    return same_file and os.path.dirname(interpreter) == os.path.dirname(sys.executable)


def launcher_text(interpreter: str) -> str:
    """The program that stands in nvlink's place, for the Python that runs this one."""
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
        help="print nvlink's messages alone (default: lines that begin with 'pylink note' follow "
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
    """Run the command; 0, or 1 with a message when there is no overlay."""
    return run(parser(), argv, _main, (OverlayError,))


def _main(options: argparse.Namespace) -> int:
    make_overlay(options.directory, options.cuda, notes=not options.plain, serve=options.serve)
    write(sys.stdout, report(options.directory, options.cuda, plain=options.plain))
    return 0


def report(directory: str, toolkit: str | None, *, plain: bool) -> str:
    """What was made, and the next command."""
    binaries = os.path.join(directory, "bin")
    try:
        with open(os.path.join(binaries, RELEASE_FILE), encoding="ascii") as stream:
            release = f" {stream.read().strip()}"
    except OSError:
        release = ""
    if toolkit is None:
        lines = [f"{directory}/bin/nvlink is pylink"]
        following = f"clang++ --cuda-path={directory} ...  (with --cuda PATH, nvcc works, too)"
    else:
        lines = [f"{directory} is the CUDA{release} toolkit in {toolkit}, with pylink as nvlink"]
        following = f"{binaries}/nvcc -arch=sm_90 -rdc=true FILE.cu ... -o PROGRAM"
    if plain:
        lines.append("messages are nvlink's alone")
    else:
        lines.append("'pylink note' lines follow nvlink's messages (--plain: nvlink's alone)")
    lines.append(f"next: {following}")
    return "".join(f"{printable(line)}\n" for line in lines)
