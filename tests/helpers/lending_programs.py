"""Random plugins that need device code of closed libraries, and programs that open them.

A closed library contains linked device code; that of an open library is not linked yet.
Modules `a` to `d` have a device function, a kernel that calls it, and a host function that launches
the kernel; `c` and `d` call functions of other modules. Plugins `p` and `q` have a kernel each that
calls functions of some modules. A description says in which libraries and archives the modules are,
how each was linked, and how the program opens the plugins.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from helpers.host_build import Failed, HostBuild, Log

# A module or plugin has a letter. By module: the modules whose functions it calls.
MODULES = "abcd"
CALLED = {"a": "", "b": "", "c": "a", "d": "bc"}
PLUGINS = "pq"
MODULE = """\
{declared}
__device__ __noinline__ int {name}_fun(int x) {{ return x + {number}{called}; }}
__global__ void {name}_kernel(int *p) {{ *p = {name}_fun(*p); }}
void {name}_host(int *p) {{ {name}_kernel<<<1, 1>>>(p); }}
"""
PLUGIN = """\
{declared}
{hosts}
__global__ void {name}_kernel(int *p) {{ *p = 3{called}; }}
extern "C" void run() {{ {name}_kernel<<<1, 1>>>(nullptr); {used} }}
"""
LOADER = """\
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
extern "C" void loaded();
int main(int count, char **words)
{
    loaded();
    int scope = std::strcmp(words[1], "global") ? RTLD_LOCAL : RTLD_GLOBAL;
    for (int i = 2; i < count; ++i) {
        void *plugin = dlopen(words[i], RTLD_NOW | scope);
        if (!plugin) { std::puts(dlerror()); return 1; }
        ((void (*)())dlsym(plugin, "run"))();
    }
    std::puts("end of main");
}
"""
# Ways to link a library: without further options, with -Bsymbolic, and with scripts of SCRIPTS.
# `owned` are open libraries, and a final one that contains the device link of all.
KINDS = ("closed", "symbolic", "hidden", "veiled", "owned")
SCRIPTS = {
    "hidden": "{ local: __cudaRegisterLinkedBinary*; };",
    "veiled": "{ local: __cudaRegisterLinkedBinary*; __fatbinwrap*; };",
    "plugin": "{ global: run; local: *; };",
}
HOST_FLAGS = ((), ("-Wl,-Bsymbolic",), ("-Wl,--version-script=plugin.map",))


@dataclass
class Plugin:
    """A plugin: its kernel calls modules of `calls`, its host code those of `uses`.

    `line` has the files of the device link and the host link. The host link gets the archives among
    them only with `host_archives`.
    """

    calls: str
    uses: str
    line: list[str]
    flags: tuple[str, ...]
    host_archives: bool
    by_step: bool  # whether `pylink dlink` does the device link, not nvcc


@dataclass
class Program:
    """A program: libraries are pairs of a kind and modules; with `loads` it is linked with them."""

    libraries: list[tuple[str, str]]
    plugins: dict[str, Plugin]
    loads: bool
    scope: str  # of dlopen: "global" or "local"

    @property
    def files(self) -> list[str]:
        """The files of the libraries, each with those that it owns."""
        return [file for number, library in enumerate(self.libraries)
                for file in library_files(number, *library)]  # fmt: skip


def library_files(number: int, kind: str, modules: str) -> list[str]:
    """Return the file of library `number`, and those of the open libraries that it owns."""
    name = f"lib{kind}{modules}.so"
    return [name, *(f"libopen{module}.so" for module in modules)] if kind == "owned" else [name]


def needs(modules: str) -> str:
    """Return these modules, and all modules whose functions they call."""
    reached = set(modules)
    while more := {called for module in reached for called in CALLED[module]} - reached:
        reached |= more
    return "".join(sorted(reached))


def draw(seed: int) -> Program:
    """Return the random program of a seed."""
    chance = random.Random(seed)

    def pick(letters: str, most: int) -> str:
        """Return a random choice of letters, in order: at least one, at most `most`."""
        return "".join(sorted(chance.sample(letters, chance.randint(1, min(most, len(letters))))))

    first = pick(MODULES, 3)
    rest = "".join(sorted(set(MODULES) - set(first)))
    libraries = [(chance.choice(KINDS), first)]
    # The second library contains the other modules, and sometimes one of the first.
    libraries.append(
        (chance.choice(KINDS), "".join(sorted(rest + first[: chance.random() < 0.25])))
    )
    plugins = {}
    for name in PLUGINS:
        files = [file for number, library in enumerate(libraries)
                 for file in library_files(number, *library)]  # fmt: skip
        archived = pick(MODULES, 2) if chance.random() < 0.4 else ""
        files += [f"archive_{archived}.a"] if archived else []
        chance.shuffle(files)
        plugins[name] = Plugin(
            calls=pick(MODULES, 2),
            uses=pick(MODULES, 2) if chance.random() < 0.5 else "",
            line=files,
            flags=chance.choice(HOST_FLAGS),
            host_archives=chance.random() < 0.6,
            by_step=chance.random() < 0.6,
        )
    return Program(libraries, plugins, chance.random() < 0.5, chance.choice(["local", "global"]))


def prepare(build: HostBuild) -> None:
    """Compile the files that all programs share."""
    for number, name in enumerate(MODULES):
        called = CALLED[name]
        text = MODULE.format(
            name=name,
            number=number,
            declared="".join(f"extern __device__ int {other}_fun(int);" for other in called),
            called="".join(f" * {other}_fun(x)" for other in called),
        )
        build.write(**{f"{name}_cu": text})
        build.compile(f"{name}.cu", "-rdc=true")
        build.library(f"libopen{name}.so", [f"{name}.o"])
    for name, text in SCRIPTS.items():
        build.write(**{f"{name}_map": text})
    build.write(loader_cc=LOADER)


def run(build: HostBuild, program: Program) -> tuple[str, Log | None]:
    """Return messages of device links, and the log of the program; None if it does not start."""
    messages = ""
    earlier: list[str] = []
    for number, (kind, modules) in enumerate(program.libraries):
        messages += make_library(build, kind, modules, earlier)
        earlier += library_files(number, kind, modules)
    for name, plugin in program.plugins.items():
        text, is_linked = make_plugin(build, name, plugin)
        messages += text
        if not is_linked:
            return messages, None
    words = ("g++", "loader.cc", *write_loaded(build, program), "-Lruntime", "-lcudart", "-ldl")
    try:
        build.run(*words, "-o", "prog")
        order = [f"./plugin_{name}.so" for name in program.plugins]
        return messages, Log(build.run("./prog", program.scope, *order))
    except Failed as failed:
        # Registration code writes after the end of its table if modules call it too often.
        return messages, Log(f"use ?: none, {failed}")


def make_library(build: HostBuild, kind: str, modules: str, earlier: Sequence[str]) -> str:
    """Make a library, which borrows code from earlier ones; return the messages of its link."""
    name = library_files(0, kind, modules)[0]
    missing = set(needs(modules)) - set(modules)
    archive = make_archive(build, "".join(sorted(missing)))
    objects = [f"{module}.o" for module in modules]
    if kind == "owned":
        flags = ("-shared", "-dlink", "-Xcompiler", "-fPIC", "-L.")
        messages = build.run(
            build.nvcc, "-arch=sm_90", *flags, *objects, *earlier, *archive, "-o", "final.o"
        )
        needed = [f"-lopen{module}" for module in modules]
        host = ["-Wl,--no-as-needed", "-L.", *needed, *earlier, *archive]
        build.run("g++", "-shared", "final.o", *host, "-o", name)
        return messages
    link_flag = f"--version-script={kind}.map" if kind in SCRIPTS else "-Bsymbolic"
    options = [] if kind == "closed" else ["-Xlinker", link_flag]
    position = ("-Xcompiler", "-fPIC")
    return build.run(
        build.nvcc, "-shared", "-arch=sm_90", "-rdc=true", "-cudart", "shared", "-Lruntime",
        *position, *options, *objects, *earlier, *archive, "-o", name,
    )  # fmt: skip


def make_archive(build: HostBuild, modules: str) -> list[str]:
    """Make an archive of the modules' objects, and return its name in a list; [] without."""
    if not modules:
        return []
    name = f"archive_{modules}.a"
    (build.folder / name).unlink(missing_ok=True)
    build.run("ar", "rcs", name, *(f"{module}.o" for module in modules))
    return [name]


def make_plugin(build: HostBuild, name: str, plugin: Plugin) -> tuple[str, bool]:
    """Compile and link a plugin.

    Return the device link's messages, and whether the host link works.
    """
    text = PLUGIN.format(
        name=name,
        declared="".join(f"extern __device__ int {other}_fun(int);" for other in plugin.calls),
        hosts="".join(f"void {other}_host(int *);" for other in plugin.uses),
        called="".join(f" + {other}_fun(1)" for other in plugin.calls),
        used="".join(f"{other}_host(nullptr);" for other in plugin.uses),
    )
    build.write(**{f"{name}_cu": text})
    build.compile(f"{name}.cu", "-rdc=true")
    for file in plugin.line:
        if file.endswith(".a"):
            make_archive(build, file[len("archive_") : -2])
    tool = [sys.executable, "-m", "pylink", "dlink"] if plugin.by_step else [build.nvcc]
    messages = build.run(
        *tool, "-arch=sm_90", "-dlink", "-shared", "-Xcompiler", "-fPIC", "-L.", f"{name}.o",
        *plugin.line, "-o", f"linked_{name}.o",
    )  # fmt: skip
    files = [file for file in plugin.line if plugin.host_archives or not file.endswith(".a")]
    host = ("g++", "-shared", f"linked_{name}.o", f"{name}.o", *plugin.flags, *files)
    try:
        build.run(*host, "-L.", "-Lruntime", "-lcudart", "-o", f"plugin_{name}.so")
    except Failed as failed:
        return messages + str(failed), False
    return messages, True


def write_loaded(build: HostBuild, program: Program) -> list[str]:
    """Write the code that runs before plugins are opened.

    Return arguments of the program's link.
    """
    used = "".join(modules for _, modules in program.libraries) if program.loads else ""
    declared = "".join(f"void {module}_host(int *);" for module in sorted(set(used)))
    called = "".join(f"{module}_host(nullptr);" for module in sorted(set(used)))
    build.write(loaded_cc=f'{declared} extern "C" void loaded() {{ {called} }}')
    return ["loaded.cc", "-Wl,--no-as-needed", *(program.files if program.loads else ())]
