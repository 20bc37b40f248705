"""Builds of commits, to measure beside one another: each in a directory of its own.

A directory has the files of a commit, and an environment in `.venv` with an editable installation
of them. Other packages come from the environment of this process. The name of the directory is that
of the contents (git's tree) and of the Python, so what is there is never of other sources.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPLETE = "complete"  # a file that a finished build has


class BuildError(Exception):
    """A commit does not exist, or cannot be built; the text says why."""


@dataclass(frozen=True)
class Build:
    """A commit that is built: `name` is for people, `folder` has the files."""

    name: str
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ".venv/bin/python"

    @property
    def program(self) -> Path:
        return self.folder / ".venv/bin/pylink"

    @property
    def module_paths_text(self) -> str:
        """The value of `sys.path` with which a process imports this build, as JSON."""
        return json.dumps([str(self.folder / "src"), *_own_paths(), *sys.path])


def _own_paths() -> list[str]:
    """Return the directories in which this environment's packages are."""
    return list(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))


def git(*words: str, root: Path = ROOT) -> str:
    """Return the output of git; BuildError if it fails."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def resolve(commit: str | None, root: Path = ROOT) -> tuple[str, str]:
    """Return the hash of a commit's tree, and a name for people; None is the working tree.

    The working tree is that of tracked files, as `git stash` would keep it.
    """
    if commit is not None:
        short = git("rev-parse", "--short=8", f"{commit}^{{commit}}", root=root)
        return git("rev-parse", f"{commit}^{{tree}}", root=root), short
    changed = git("stash", "create", root=root)
    head = git("rev-parse", "--short=8", "HEAD", root=root)
    name = f"{head} with changes" if changed else head
    return git("rev-parse", f"{changed or 'HEAD'}^{{tree}}", root=root), name


def build(commit: str | None, builds: Path) -> Build:
    """Return the build of a commit (None: the working tree), made if missing; BuildError if not."""
    tree, name = resolve(commit)
    folder = builds.resolve() / f"{tree[:16]}-{sys.implementation.cache_tag}"
    result = Build(name, folder)
    if (folder / COMPLETE).is_file():
        return result
    print(f"building {name} in {folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = folder / "files.tar"
    git("archive", "--output", str(archive), tree)
    run(["tar", "-xf", str(archive)], folder)
    archive.unlink()
    run([sys.executable, "-m", "venv", "--without-pip", ".venv"], folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / ".venv/lib" / version / "site-packages"
    # The build sees this environment's packages, but not its editable pylink: Python does not
    # read .pth files in directories that a .pth file names.
    (site / "packages.pth").write_text("\n".join(_own_paths()) + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(result.python), "install", "--quiet"]
    pip += ["--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--editable", "."]
    run(pip, folder, PYLINK_NATIVE="0")
    python = str(result.python)
    run([python, "setup.py", "--quiet", "build_ext", "--inplace"], folder)
    run([python, "-m", "compileall", "-q", "src/pylink"], folder)
    run([python, "-m", "pylink.startup.bundle"], folder)
    (folder / COMPLETE).touch()
    return result


def run(argv: Sequence[str], folder: Path, **variables: str) -> None:
    """Run a step of a build; BuildError with its output if it fails."""
    environment = {**os.environ, **variables}
    for name in ("PYTHONPATH", "PYLINK_DEBUG", "PYLINK_SANITIZE"):
        environment.pop(name, None)
    done = subprocess.run(
        argv,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        env=environment,
    )
    if done.returncode:
        raise BuildError(f"{folder}: {' '.join(argv)}\n{done.stdout[-3000:]}")
