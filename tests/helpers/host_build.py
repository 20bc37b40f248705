"""Builds host programs and shared libraries with device code, by nvcc of a pylink overlay.

They are linked with `fake_cudart.c` in place of the CUDA runtime and run without a GPU. All that
happens before main and at each launch still happens.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from helpers import oracle

from pylink.command.overlay import make_overlay

RUNTIME = Path(__file__).with_name("fake_cudart.c")
ARCH = "sm_90"
LINKERS = [name for name in ("bfd", "gold", "lld") if shutil.which(f"ld.{name}")]


class Failed(Exception):
    """A command of a build failed; the text is its output."""


class Log:
    """The log of a program, as `fake_cudart.c` writes it.

    `used` has the name and the image of each launch or copy. `hosts` has the file of each
    registered name, `images` is the number of images, `ended` whether main came to its end.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.used = re.findall(r"^use (\S+): (.*)$", text, re.MULTILINE)
        self.hosts = dict(re.findall(r"^(\S+): image \d+, host (\S+)$", text, re.MULTILINE))
        self.images = len(re.findall(r"^image \d+: complete$", text, re.MULTILINE))
        self.ended = text.endswith("end of main\n")

    @property
    def lost_names(self) -> list[str]:
        """The names of launches and copies for which no image was found."""
        return [name for name, image in self.used if not image.startswith("image")]


class HostBuild:
    """A folder with sources, objects, libraries and programs; `root` is the overlay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "toolkit"
        make_overlay(str(self.root), str(oracle.toolchain().bin.parent))
        self.nvcc = self.root / "bin" / "nvcc"
        runtime = folder / "runtime"
        runtime.mkdir()
        soname = "libcudart.so.13"
        flags = ("-shared", "-fPIC", "-w", f"-Wl,-soname,{soname}")
        self.run("gcc", *flags, str(RUNTIME), "-o", f"runtime/{soname}", "-ldl")
        (runtime / "libcudart.so").symlink_to(soname)

    def run(self, *words: str | Path) -> str:
        """Return the output of a command; Failed if it fails."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env={**os.environ, "LD_LIBRARY_PATH": f"{self.folder}/runtime:{self.folder}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{done.returncode}: {' '.join(map(str, words))}\n{done.stdout}")
        return done.stdout

    def write(self, **files: str) -> None:
        """Write files: `a_cu` is the text of a.cu."""
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (self.folder / f"{stem}.{suffix}").write_text(text)

    def compile(self, source: str, *flags: str, target: str = "", real: bool = True) -> str:
        """Compile a source by the toolkit's nvcc (`real`) or the overlay's; return the object."""
        object_name = target or f"{source.rpartition('.')[0]}.o"
        nvcc = oracle.toolchain().tool("nvcc") if real else self.nvcc
        position = ("-Xcompiler", "-fPIC")
        self.run(nvcc, f"-arch={ARCH}", *position, *flags, "-c", source, "-o", object_name)
        return object_name

    def library(self, name: str, objects: Sequence[str], *flags: str, linker: str = "") -> str:
        """Make an open library, whose device code is not linked; return its name."""
        chosen = (f"-fuse-ld={linker}",) if linker else ()
        self.run("g++", "-shared", *chosen, *flags, *objects, "-o", name)
        return name

    def closed(self, name: str, objects: Sequence[str], *flags: str) -> str:
        """Make a closed library, which nvcc links for the device by itself; return its name."""
        position = ("-Xcompiler", "-fPIC")
        self.run(self.nvcc, "-shared", *self._flags, *position, *flags, *objects, "-o", name)
        return name

    def program(self, name: str, inputs: Sequence[str], *flags: str) -> str:
        """Link a program by nvcc, and return its name."""
        self.run(self.nvcc, *self._flags, *flags, *inputs, "-o", name)
        return name

    def start(self, name: str) -> Log:
        """Run a program and return its log."""
        return Log(self.run(f"./{name}"))

    @property
    def _flags(self) -> tuple[str, ...]:
        """The options of all runs of nvcc."""
        libraries = ("-L.", "-Lruntime", f"-L{self.root}/lib64")
        return (f"-arch={ARCH}", "-rdc=true", "-cudart", "shared", *libraries)
