"""Builds the native kernels; every other fact about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, "src")
from pylink.facts import header

NATIVE = Path("src/_native")
MADE = Path("build/facts")
DEBUG = os.environ.get("PYLINK_DEBUG") == "1"
# For `make fuzz`: the first error in memory or undefined behaviour ends the process with a report.
SANITIZE = os.environ.get("PYLINK_SANITIZE") == "1"
SANITIZERS = [
    "-fsanitize=address,undefined",
    "-fno-sanitize=nonnull-attribute",
    "-fno-sanitize-recover=all",
]
# make builds native code by itself and keeps what has not changed: its install has none to build.
WANTED = os.environ.get("PYLINK_NATIVE") != "0"
JOBS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

if SANITIZE:
    FLAGS = ["-O1", "-g1", "-fno-omit-frame-pointer", *SANITIZERS]
else:
    FLAGS = ["-O0", "-g"] if DEBUG else ["-O3", "-g0"]

kernels = [
    Extension(
        f"pylink._native.{source.stem}",
        [str(source)],
        extra_compile_args=FLAGS,
        extra_link_args=SANITIZERS if SANITIZE else [],
    )
    for source in sorted(NATIVE.glob("*/*.pyx"))
]

# Libraries with nvJitLink's name (src/pylink/jitlink); no Python modules, but built as such are.
standins = [
    Extension(
        f"pylink.jitlink.{source.stem}",
        [str(source)],
        depends=[str(source.with_suffix(".map")), str(source.with_name("standin.h"))],
        extra_link_args=[
            f"-Wl,-soname,{source.stem.replace('nvjitlink', 'libnvJitLink.so.')}",
            f"-Wl,--version-script={source.with_suffix('.map')}",
        ],
    )
    for source in sorted(NATIVE.glob("jitlink/*.c"))
]


class BuildNative(build_ext):
    """Makes C of the kernels only when they are built: who asks for metadata need not wait for it.

    A source's headers are found by cythonize, so that a change builds again what includes it alone.
    """

    def finalize_options(self) -> None:
        header.write(MADE)
        made = cythonize(
            kernels,
            include_path=[str(MADE), *sorted({str(one.parent) for one in NATIVE.glob("*/*.pxd")})],
            build_dir="build/cython",
            nthreads=JOBS,
            compiler_directives={
                "language_level": 3,
                "boundscheck": DEBUG,
                "wraparound": False,
                "cdivision": True,
                "initializedcheck": False,
            },
        )
        self.distribution.ext_modules = [*made, *standins]
        super().finalize_options()


setup(
    ext_modules=[*kernels, *standins] if WANTED else [],
    cmdclass={"build_ext": BuildNative},
    options={"build_ext": {"parallel": JOBS}},
)
