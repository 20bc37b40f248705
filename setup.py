"""Builds the native kernels; every other fact about the package is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

NATIVE = Path("src/_native")
DEBUG = os.environ.get("PYLINK_DEBUG") == "1"

extensions = [
    Extension(
        f"pylink._native.{source.stem}",
        [str(source)],
        depends=sorted(map(str, NATIVE.glob("*.pxd"))),
        extra_compile_args=["-O0", "-g"] if DEBUG else ["-O3", "-g0"],
    )
    for source in sorted(NATIVE.glob("*.pyx"))
]

setup(
    ext_modules=cythonize(
        extensions,
        include_path=[str(NATIVE)],
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
        },
    )
)
