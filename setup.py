"""Builds the native kernels, the program `pylink`, the stand-in libraries and the bundle.

Every other fact about the package is in pyproject.toml.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from tempfile import TemporaryDirectory

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import LinkError
from setuptools.modified import newer_group

# setuptools brings its own distutils and must be imported first.
from distutils.ccompiler import new_compiler  # isort: skip
from distutils.command.build import build  # isort: skip
from distutils.command.build_scripts import build_scripts  # isort: skip
from distutils.sysconfig import customize_compiler  # isort: skip

sys.path.insert(0, "src")
from pylink.devicelink import nvcctable
from pylink.facts import header

NATIVE = Path("src/_native")
# Directory of the headers that are generated from the tables of facts.
GENERATED = Path("build/facts")
# With PYLINK_COVERAGE=1 (`make coverage`), the kernels count how often each line and branch of
# their C runs. The counts are atomic, since several threads count the same lines.
COUNTED = (
    ["--coverage", "-fprofile-update=prefer-atomic"]
    if os.environ.get("PYLINK_COVERAGE") == "1"
    else []
)
# Directory of the kernels as C.
TRANSLATED = Path("build/cython")
DEBUG = os.environ.get("PYLINK_DEBUG") == "1"
# By value of PYLINK_SANITIZE: with 1 (`make fuzz`), the first error in memory or undefined behavior
# ends the process with a report; with thread (`make races`), unsynchronized accesses are reported.
SANITIZERS = {
    "1": [
        "-fsanitize=address,undefined",
        "-fno-sanitize=nonnull-attribute",
        "-fno-sanitize-recover=all",
    ],
    "thread": ["-fsanitize=thread"],
}.get(os.environ.get("PYLINK_SANITIZE", ""), [])
# make builds native code by itself and keeps what has not changed; it sets PYLINK_NATIVE=0 for the
# installation of the package, which then builds none.
BUILDS_NATIVE = os.environ.get("PYLINK_NATIVE") != "0"
JOBS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

if COUNTED:
    FLAGS = ["-O0", "-g0", *COUNTED]  # optimization joins lines
elif SANITIZERS:
    FLAGS = ["-O1", "-g1", "-fno-omit-frame-pointer", *SANITIZERS]
else:
    FLAGS = ["-O0", "-g"] if DEBUG else ["-O3", "-g0"]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # Functions are as cheap to create as those of C; embedsignature gives them signatures.
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
}

# Modules are compiled one by one, and linked into one shared object
# (src/pylink/_native/__init__.py) because a link needs most of them: opening a file for each would
# take longer than loading them.
modules = [
    Extension(f"pylink._native.{source.stem}", [str(source)])
    for source in sorted(NATIVE.glob("*/*.pyx"))
]
kernels = Extension(
    "pylink._native.kernels",
    [source for module in modules for source in module.sources],
    include_dirs=[str(NATIVE)],
    extra_compile_args=FLAGS,
    # -u lets the linker keep __gcov_dump, which scripts/write_native_counts.py calls.
    extra_link_args=[*COUNTED, *(["-Wl,-u,__gcov_dump"] if COUNTED else []), *SANITIZERS],
)

# Libraries with nvJitLink's name (src/pylink/jitlink). They are built like Python modules, but are
# not modules.
standins = [
    Extension(
        f"pylink.jitlink.{source.stem}",
        [str(source)],
        depends=[str(source.with_suffix(".map")), str(source.with_name("standin.h"))],
        extra_compile_args=["-g0"],  # debug data has the directory of the build
        extra_link_args=[
            f"-Wl,-soname,{source.stem.replace('nvjitlink', 'libnvJitLink.so.')}",
            f"-Wl,--version-script={source.with_suffix('.map')}",
        ],
    )
    for source in sorted(NATIVE.glob("jitlink/*.c"))
]


def empty_if_changed(directory: Path, settings: str) -> None:
    """Empty a directory of built files unless they were made with these settings.

    Cython and setuptools compare only the times of files. So after a change of PYLINK_DEBUG they
    would keep what another build made, and mix it with new files.
    """
    record = directory / "settings.txt"
    if not record.exists() or record.read_text() != settings:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True, exist_ok=True)
        record.write_text(settings)


class BuildNative(build_ext):
    """Translates kernels to C only when they are built, so that reading the metadata is fast.

    cythonize finds the headers of a source, so a changed header rebuilds only the sources that
    include it.
    """

    def finalize_options(self) -> None:
        header.write_headers(NATIVE, GENERATED)
        empty_if_changed(TRANSLATED, str(DIRECTIVES))
        translated = cythonize(
            modules,
            include_path=["src", str(GENERATED), str(NATIVE)],
            build_dir=str(TRANSLATED),
            nthreads=JOBS,
            compiler_directives=DIRECTIVES,
        )
        kernels.sources = [source for module in translated for source in module.sources]
        self.distribution.ext_modules = [kernels, *standins]
        super().finalize_options()

    def build_extension(self, ext: Extension) -> None:
        """Compile the modules that are newer than their object files, and link all of them."""
        if ext is kernels:
            self.objects = Path(self.build_temp, "kernels")
            empty_if_changed(self.objects, str(FLAGS))
            with ThreadPoolExecutor(JOBS) as pool:
                ext.extra_objects = list(pool.map(self.compile_module, ext.sources))
            ext.depends, ext.sources = ext.extra_objects, []
        super().build_extension(ext)

    def compile_module(self, source: str) -> str:
        """Compile a C file if its object file is older, and return the object file.

        The compiler writes a rule of make before each object file: it names the source, and all
        headers that are not the system's. A missing file, such as a header that is gone, counts as
        newer. So does a rule that is newer than its object file: the compiler was stopped.
        """
        (object_file,) = self.compiler.object_filenames([source], output_dir=str(self.objects))
        rule = Path(object_file).with_suffix(".d")
        read = rule.read_text().replace("\\\n", "").split()[1:] if rule.exists() else []
        if self.force or newer_group([str(rule), *read], object_file, missing="newer"):
            self.compiler.compile(
                [source],
                output_dir=str(self.objects),
                include_dirs=kernels.include_dirs,
                extra_postargs=[*FLAGS, "-MMD", "-MF", str(rule)],
            )
        return object_file


def has_static_library(compiler: list[str]) -> bool:
    """Return whether the C library is installed as an archive for static links."""
    answer = subprocess.run(
        [*compiler, "-print-file-name=libc.a"], capture_output=True, text=True, check=False
    )
    return Path(answer.stdout.strip()).is_absolute()


class Build(build):
    """Also builds the bundle with which a wheel starts fast: src/pylink/startup/bundle.py.

    The bundle is made by importing what was built. A wheel for another machine gets a bundle of
    this machine, with the name of the native code changed: PYLINK_SHIP_FROM is a directory with a
    package that this machine can import.
    """

    def initialize_options(self) -> None:
        super().initialize_options()
        self.editable_mode = False  # setuptools changes it

    def run(self) -> None:
        super().run()
        if self.editable_mode or not BUILDS_NATIVE or SANITIZERS:
            return
        package = Path(self.build_lib).resolve() / "pylink"
        for part in ("cubins", "linked"):  # of `pylink demo`
            shutil.copytree(Path("demo") / part, package / "demo" / part, dirs_exist_ok=True)
        bundle = package / "startup" / f"link.{sys.implementation.cache_tag}.bundle"
        imported = Path(os.environ.get("PYLINK_SHIP_FROM") or package.parent).resolve() / "pylink"
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        shipped_suffix = os.environ.get("SETUPTOOLS_EXT_SUFFIX", suffix)
        command = [sys.executable, "-S", imported / "startup" / "bundle.py"]
        # With a fixed hash seed, the same sources make the same bytes.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        kernels_file = f"kernels{shipped_suffix}"
        subprocess.run([*command, "--ship", bundle, kernels_file], env=environment, check=True)


class BuildScripts(build_scripts):
    """Adds the program `pylink`, which is compiled, to the scripts.

    It looks for an installed package in `../lib` beside the scripts. In an editable installation
    the second line of the script `pylink-python` says where the package is.
    """

    def initialize_options(self) -> None:
        super().initialize_options()
        self.editable_mode = False  # setuptools changes it

    def run(self) -> None:
        super().run()
        directory = Path(self.build_dir)
        if self.editable_mode:
            script = directory / "pylink-python"
            first, rest = script.read_text().split("\n", 1)
            script.write_text(f"{first}\n# pylink is in {Path('src').resolve()}\n{rest}")
        compiler = new_compiler()
        customize_compiler(compiler)
        macros = {
            "PYLINK_MAGIC": f"{{{','.join(map(str, MAGIC_NUMBER))}}}",
            "PYLINK_BUNDLE": f'"link.{sys.implementation.cache_tag}.pyc"',
            "PYLINK_SHIPPED": f'"link.{sys.implementation.cache_tag}.bundle"',
            "PYLINK_LIB": f'"{Path(sysconfig.get_path("stdlib")).name}"',
        }
        with TemporaryDirectory() as temporary:
            Path(temporary, "nvcctable.h").write_text(nvcctable.header_text())
            objects = compiler.compile(
                ["src/_native/launcher/pylink.c"],
                output_dir=temporary,
                include_dirs=[temporary],
                macros=list(macros.items()),
                extra_postargs=["-Os", "-g0"],
            )
            # -s removes the debug data of the compiler's own start code. -static, if possible,
            # because loading the C library takes longer than all that the launcher does.
            program = str(directory / "pylink")
            if has_static_library(compiler.linker_exe):
                with suppress(LinkError):  # the library may be that of another system
                    compiler.link_executable(objects, program, extra_postargs=["-s", "-static"])
                    return
            compiler.link_executable(objects, program, extra_postargs=["-s"])


setup(
    ext_modules=[kernels, *standins] if BUILDS_NATIVE else [],
    cmdclass={"build": Build, "build_ext": BuildNative, "build_scripts": BuildScripts},
    options={"build_ext": {"parallel": JOBS}},
)
