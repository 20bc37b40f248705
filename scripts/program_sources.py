"""The programs of real_programs.py: the table, where their sources are, and their objects."""

from __future__ import annotations

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
class Flavour:
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
FLAVOURS = {
    "plain": Flavour(),
    "lineinfo": Flavour(("-lineinfo",)),
    "debug": Flavour(("-G",)),
    "unoptimized": Flavour(("-Xptxas", "-O0")),
    "host": Flavour((), OBJECT, ("-m64", "-cpu-arch=X86_64")),
    "host-used": Flavour((), OBJECT, ("-m64", "-cpu-arch=X86_64", "-use-host-info")),
    "lto": Flavour((), IR, ("-lto", "-nvvmpath=nvvm"), is_linked_once=True),
}
COMPILE_LIMIT = 600  # seconds that one compilation may take


@dataclass(frozen=True)
class Program:
    """A row of the table: the sources to compile, and the options."""

    name: str
    repository: str  # OWNER/NAME
    sources: tuple[str, ...]  # globs below the repository
    options: tuple[str, ...] = ()  # of nvcc; {repo} stands for the checkout
    needs: tuple[str, ...] = ()  # other repositories, OWNER/NAME; {NAME} stands for each
    made: tuple[tuple[str, str], ...] = ()  # headers that the build writes; {made} is their folder
    archs: tuple[str, ...] = ()  # empty: those of the command line
    limit: int = 40  # sources taken, in order of name


def read_table(path: Path) -> list[Program]:
    """The programs of a table; ValueError for a row with unknown or missing fields."""
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
    """The directory of a repository's files: a checkout, or the newest commit of a bare clone.

    The latter is unpacked into the cache once. None if there is neither.
    """
    name = repository.rpartition("/")[2]
    if (checkouts / name / ".git").exists():
        return checkouts / name
    bare = (
        checkouts / name,
        checkouts / f"{name}.git",
        checkouts / repository.replace("/", "+") / "repo",
    )
    clone = next((path for path in bare if (path / "objects").is_dir()), None)
    if clone is None:
        return None
    target = cache / "files" / name
    if not target.is_dir():
        part = target.with_name(f"{name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        unpack(clone, part)
        part.rename(target)
    return target


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


def write_generated_headers(program: Program, cache: Path) -> Path:
    """Write the headers that the program's own build would write, and return their folder."""
    folder = cache / "made" / program.name
    for name, text in program.made:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def compile_one(source: Path, flavour: Flavour, options: Sequence[str], cache: Path) -> Path:
    """Compile a source unless the cache has its object; CompileError if it does not compile."""
    inputs = (oracle.version(), str(source), *flavour.kind, *options)
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:24]
    target = cache / "cubins" / key[:2] / f"{key}{flavour.suffix}"
    failed = target.with_suffix(".failed")
    if failed.is_file():
        raise CompileError(failed.read_text())
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    nvcc = oracle.toolchain().tool("nvcc")
    argv = [nvcc, *flavour.kind, "-w", *options]
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
    program: Program, places: dict[str, Path], flavour: Flavour, arch: str, cache: Path
) -> tuple[list[Path], list[str]]:
    """The objects of a program's sources, and a line for each source that does not compile.

    `places` are the directories that stand for {repo}, {made} and {NAME} in options.
    """
    files = places["repo"]
    sources = sorted({path for glob in program.sources for path in files.glob(glob)})
    options = [f"-arch=sm_{arch}", *program.options, *flavour.options]
    for name, place in places.items():
        options = [option.replace(f"{{{name}}}", str(place)) for option in options]
    cubins, failures = [], []
    for source in sources[: program.limit]:
        try:
            cubins.append(compile_one(source, flavour, options, cache))
        except CompileError as error:
            lines = str(error).strip().splitlines() or ["nvcc failed without a word"]
            reason = next((line for line in lines if "error" in line), lines[-1])
            failures.append(f"{source.relative_to(files)}: {reason[:200]}")
    return cubins, failures
