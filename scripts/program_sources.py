"""The programs of real_programs.py: the table, where their sources are, and their objects."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers import oracle

# Options of nvcc by the kind of object to compile.
CUBIN = ("-rdc=true", "-cubin")
OBJECT = ("-dc",)  # with host code, which names the kernels and variables that it uses
IR = ("-dc", "-dlto")  # LTO-IR


@dataclass(frozen=True)
class Flavor:
    """A way to compile the sources of a program, with `options` and a `kind` of object.

    `link_options` are for all links of these objects.
    """

    options: tuple[str, ...] = ()
    kind: tuple[str, ...] = CUBIN
    link_options: tuple[str, ...] = ()
    is_linked_once: bool = False  # no links with -r, which -lto does not support

    @property
    def suffix(self) -> str:
        return ".cubin" if self.kind == CUBIN else ".o"


# Ways to compile a program.
FLAVORS = {
    "plain": Flavor(),
    "lineinfo": Flavor(("-lineinfo",)),
    "debug": Flavor(("-G",)),
    "unoptimized": Flavor(("-Xptxas", "-O0")),
    "host": Flavor((), OBJECT, ("-m64", "-cpu-arch=X86_64")),
    "host-used": Flavor((), OBJECT, ("-m64", "-cpu-arch=X86_64", "-use-host-info")),
    "lto": Flavor((), IR, ("-lto", "-nvvmpath=nvvm"), is_linked_once=True),
}
COMPILE_LIMIT = 600  # seconds that one compilation may take


@dataclass(frozen=True)
class Program:
    """A row of the table: the sources to compile, and the options."""

    name: str
    repository: str  # OWNER/NAME
    sources: tuple[str, ...]  # globs below the repository, or below {made}
    options: tuple[str, ...] = ()  # of nvcc; {repo} stands for the checkout
    needs: tuple[str, ...] = ()  # other repositories, OWNER/NAME; {NAME} stands for each
    made: tuple[tuple[str, str], ...] = ()  # headers that the build writes; {made} is their folder
    prepare: str = ""  # a shell command, run once in {made}, for other files that the build writes
    members: tuple[str, ...] = ()  # like sources, for the objects of the program's own archive
    libraries: tuple[str, ...] = ()  # names of other archives, for -l
    archs: tuple[str, ...] = ()  # empty: those of the command line
    limit: int = 40  # sources taken, in order of name


def read_table(path: Path) -> list[Program]:
    """Return the programs of a table; ValueError for a row with unknown or missing fields."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    programs = []
    for number, row in enumerate(rows, 1):
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
        }
        try:
            values["made"] = tuple(values.get("made", {}).items())
            programs.append(Program(**values))
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{path}, program {number}: {error}") from None
    return programs


def find_checkout(repository: str, checkouts: Path, cache: Path) -> Path | None:
    """Return the directory of a repository: a checkout, or the newest commit of a bare clone.

    Each commit of the latter is unpacked into the cache once. None if there is neither.
    """
    name = repository.rpartition("/")[2]
    if (checkouts / name / ".git").exists():
        return checkouts / name
    clone = find_bare_clone(repository, checkouts)
    if clone is None:
        return None
    target = cache / "files" / f"{name}-{_newest_commit(clone)}"
    if not target.is_dir():
        part = target.with_name(f"{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        unpack(clone, part)
        part.rename(target)
    return target


def find_bare_clone(repository: str, checkouts: Path) -> Path | None:
    """Return the directory of a bare clone, or None without one."""
    name = repository.rpartition("/")[2]
    bare = (
        checkouts / name,
        checkouts / f"{name}.git",
        checkouts / repository.replace("/", "+") / "repo",
    )
    return next((path for path in bare if (path / "objects").is_dir()), None)


def commit_of(repository: str, checkouts: Path) -> str:
    """Return the commit of a checkout, or the newest of a bare clone, in eight digits.

    A checkout with other files than those of the commit is said to have changes.
    """
    checkout = checkouts / repository.rpartition("/")[2]
    if (checkout / ".git").exists():
        commit, changes = state_of(checkout)
        return f"{commit[:8]} with changes" if changes else commit[:8]
    clone = find_bare_clone(repository, checkouts)
    assert clone is not None, "find_places found it"
    return _newest_commit(clone)[:8]


def _newest_commit(clone: Path) -> str:
    """Return the newest commit of a checkout or a bare clone."""
    argv = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@functools.cache
def state_of(folder: Path) -> tuple[str, str]:
    """Return the commit of a checkout, and a digest of all files that differ from it.

    The digest is empty without such files; git-ignored files do not count. Both are empty for files
    of a bare clone, whose folder has the commit in its name.
    """
    if not (folder / ".git").exists():
        return "", ""
    argv = ["git", "-C", str(folder), "status", "--porcelain", "-z", "--no-renames", "-uall"]
    entries = subprocess.run(argv, capture_output=True, check=True).stdout.split(b"\0")
    digest = hashlib.sha256()
    for entry in filter(None, entries):
        path = folder / os.fsdecode(entry[3:])
        digest.update(entry + b"\0")
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        elif path.is_dir():  # a submodule
            digest.update("".join(state_of(path)).encode())
    return _newest_commit(folder), digest.hexdigest()[:16] if any(entries) else ""


def unpack(bare: Path, folder: Path) -> None:
    """Write the files of the newest commit of a clone, except those whose contents it lacks."""
    git = ["git", f"--git-dir={bare}"]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True)
    entries = [entry.split(b"\t", 1) for entry in listed.stdout.split(b"\0") if entry]
    blobs = [(head.split()[2], path) for head, path in entries if head.split()[1] == b"blob"]
    with subprocess.Popen(
        [*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as contents:
        assert contents.stdin is not None
        assert contents.stdout is not None
        for blob, path in blobs:
            contents.stdin.write(blob + b"\n")
            contents.stdin.flush()
            head = contents.stdout.readline().split()
            if head[-1] == b"missing":
                continue
            data = contents.stdout.read(int(head[2]) + 1)[:-1]
            target = folder / os.fsdecode(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def find_places(program: Program, checkouts: Path, cache: Path) -> dict[str, Path] | str:
    """Return the directories for {repo}, {made} and {NAME}; a string is a missing repository."""
    places = {}
    for name in (program.repository, *program.needs):
        files = find_checkout(name, checkouts, cache)
        if files is None:
            return name
        places["repo" if name == program.repository else name.rpartition("/")[2]] = files
    # `prepare` may read the files of all repositories, so a change in any gives a new folder.
    states = [f"{name} {path} {state_of(path)}" for name, path in sorted(places.items())]
    key = _digest([program.prepare, *map(str, program.made), *states])
    places["made"] = cache / "made" / f"{program.name}-{key}"
    write_generated_files(program, places)
    return places


def write_generated_files(program: Program, places: dict[str, Path]) -> None:
    """Write the files that the program's own build would write, into its folder."""
    folder = places["made"]
    for name, text in program.made:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = folder / ".prepared"
    if program.prepare and not (done.is_file() and done.read_text() == program.prepare):
        folder.mkdir(parents=True, exist_ok=True)
        command = fill_in(program.prepare, places)
        subprocess.run(["/bin/sh", "-ec", command], cwd=folder, check=True)
        done.write_text(program.prepare)


def fill_in(text: str, places: dict[str, Path]) -> str:
    """Return the text with directories in place of {repo}, {made} and {NAME}."""
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", str(place))
    return text


def _digest(texts: Sequence[str]) -> str:
    """Return a digest of some texts, for the name of a file."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def compile_one(
    source: Path, flavor: Flavor, options: Sequence[str], cache: Path, state: str = ""
) -> Path:
    """Compile a source unless the cache has its object; CompileError if it does not compile.

    `state` identifies the versions of the headers: an object of another state is not used.
    """
    contents = hashlib.sha256(source.read_bytes()).hexdigest()
    key = _digest([oracle.version(), str(source), contents, state, *flavor.kind, *options])
    target = cache / "cubins" / key[:2] / f"{key}{flavor.suffix}"
    failed = target.with_suffix(".failed")
    if failed.is_file():
        raise CompileError(failed.read_text())
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    nvcc = oracle.toolchain().tool("nvcc")
    argv = [nvcc, *flavor.kind, "-w", *options]
    argv += [str(source), "-o", str(target.with_suffix(".part"))]
    try:
        done = subprocess.run(
            argv,
            cwd=source.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMPILE_LIMIT,
        )
        output = done.stderr + done.stdout
        failure = output if done.returncode else ""
    except subprocess.TimeoutExpired:
        failure = f"more than {COMPILE_LIMIT} seconds"
    if failure:
        failed.write_text(failure)
        raise CompileError(failure)
    target.with_suffix(".part").rename(target)
    return target


class CompileError(Exception):
    """A source that does not compile with these options."""


def compile_all(
    program: Program, places: dict[str, Path], flavor: Flavor, arch: str, cache: Path
) -> tuple[list[Path], list[str]]:
    """Return the objects of a program's sources, and a line for each source that does not compile.

    Only the first `program.limit` sources and members count.
    `places` are the directories that stand for {repo}, {made} and {NAME} in options.
    """
    sources = [path for globs in (program.sources, program.members) for path in find(globs, places)]
    options = [f"-arch=sm_{arch}", *program.options, *flavor.options]
    options = [fill_in(option, places) for option in options]
    # The folder `made` is omitted: its name has its state, and options with {made} contain it.
    states = [str(state_of(path)) for name, path in sorted(places.items()) if name != "made"]
    cubins, failures = [], []
    for source in sources[: program.limit]:
        try:
            cubins.append(compile_one(source, flavor, options, cache, " ".join(states)))
        except CompileError as error:
            lines = str(error).strip().splitlines() or ["nvcc failed without a word"]
            reason = next((line for line in lines if "error" in line), lines[-1])
            files = places["repo"]
            name = source.relative_to(files) if source.is_relative_to(files) else source.name
            failures.append(f"{name}: {reason[:200]}")
    return cubins, failures


def find(globs: Sequence[str], places: dict[str, Path]) -> list[Path]:
    """Return files of patterns below {made} or, without such a beginning, below the repository."""
    paths: set[Path] = set()
    for glob in globs:
        below_made = glob.removeprefix("{made}/")
        place = places["repo" if below_made == glob else "made"]
        paths |= set(place.glob(below_made))
    return sorted(paths)
