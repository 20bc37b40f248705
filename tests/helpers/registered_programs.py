"""Random programs of objects, archives and shared libraries that register the same modules.

Modules `a` to `d` have a kernel and a host function that launches it each. A description says which
files they are in, how each library was linked, and whether the last link makes a program or a
plugin, which a program opens after it has loaded the libraries.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from helpers.host_build import Failed, HostBuild, Log

MODULES = "abcd"  # a letter for each
MODULE = """\
__global__ void {name}_kernel(int *p) {{ *p = 2; }}
void {name}_host(int *p) {{ {name}_kernel<<<1, 1>>>(p); }}
"""
MAIN = """\
#include <cstdio>
extern "C" void use();
__global__ void main_kernel(int *p) { *p = 3; }
int main() { main_kernel<<<1, 1>>>(nullptr); use(); std::puts("end of main"); }
"""
PLUGIN = """\
extern "C" void use();
__global__ void plugin_kernel(int *p) { *p = 4; }
extern "C" void run() { plugin_kernel<<<1, 1>>>(nullptr); use(); }
"""
LOADER = """\
#include <cstdio>
#include <dlfcn.h>
extern "C" void loaded();
int main()
{
    loaded();
    void *plugin = dlopen("./plugin.so", RTLD_NOW);
    if (!plugin) { std::puts(dlerror()); return 1; }
    ((void (*)())dlsym(plugin, "run"))();
    std::puts("end of main");
}
"""
# Ways to link a library. Open libraries are not linked for the device.
KINDS = ("closed", "symbolic", "hidden", "open", "final")
HIDING = "{ local: __cudaRegisterLinkedBinary*; };"


@dataclass
class Program:
    """A program or plugin. Libraries are pairs of a kind and their modules.

    A final library is linked from open libraries with one module each. `line` has the files of the
    last link in order, `lib0.so` for the first library.
    """

    is_plugin: bool
    objects: list[str]
    archives: list[str]
    libraries: list[tuple[str, str]]
    line: list[str] = field(default_factory=list)

    @property
    def modules(self) -> list[str]:
        """The modules that any file contains."""
        parts = [*self.objects, *self.archives, *(modules for _, modules in self.libraries)]
        return sorted(set("".join(parts)))


def draw(seed: int) -> Program:
    """Return the random program of a seed; every second one is a plugin."""
    chance = random.Random(seed)

    def pick(most: int) -> str:
        """Return a random choice of modules, in order."""
        return "".join(sorted(chance.sample(MODULES, chance.randint(1, most))))

    is_plugin = seed % 2 == 1
    kinds = [kind for kind in KINDS if kind != "open"] if is_plugin else list(KINDS)
    libraries = [(chance.choice(kinds), pick(3)) for _ in range(chance.randint(1, 2))]
    if sum(kind == "final" for kind, _ in libraries) == 2:
        libraries[1] = ("closed", libraries[1][1])
    objects = list(pick(1)) if chance.random() < 0.35 else []
    archived = pick(2).translate({ord(name): None for name in objects})
    archives = [archived] if archived and chance.random() < 0.6 else []
    program = Program(is_plugin, objects, archives, libraries)
    names = [f"{name}.o" for name in program.objects]
    names += [f"archive_{archive}.a" for archive in program.archives]
    for number, (kind, modules) in enumerate(libraries):
        names.append(f"lib{number}.so")
        if kind == "final":
            names += [f"libopen{module}.so" for module in modules]
    chance.shuffle(names)
    program.line = names
    return program


def prepare(build: HostBuild) -> None:
    """Compile the files that all programs share."""
    for name in MODULES:
        build.write(**{f"{name}_cu": MODULE.format(name=name)})
        build.compile(f"{name}.cu", "-rdc=true")
        build.library(f"libopen{name}.so", [f"{name}.o"])
    build.write(main_cu=MAIN, plugin_cu=PLUGIN, loader_cc=LOADER, hiding_map=HIDING)
    build.compile("main.cu", "-rdc=true")
    build.compile("plugin.cu", "-rdc=true")


def run(build: HostBuild, program: Program) -> tuple[str, Log | None]:
    """Return the messages of the last device link, and the log of the program.

    None if it does not start.
    """
    for number, (kind, modules) in enumerate(program.libraries):
        make_library(build, f"lib{number}.so", kind, modules)
    for modules in program.archives:
        (build.folder / f"archive_{modules}.a").unlink(missing_ok=True)
        build.run("ar", "rcs", f"archive_{modules}.a", *(f"{module}.o" for module in modules))
    write_uses(build, "use", program.modules)
    device = [str(build.nvcc), "-arch=sm_90", "-dlink", "-L."]
    if not program.is_plugin:
        messages = build.run(*device, "main.o", *program.line, "-o", "linked.o")
        host = ("g++", "linked.o", "main.o", "use.o", *program.line)
        return messages, start(build, [*host, "-L.", "-Lruntime", "-lcudart", "-o", "prog"])
    messages = build.run(*device, "-shared", "-Xcompiler", "-fPIC", "plugin.o", *program.line,
                     "-o", "linked.o")  # fmt: skip
    host = ("g++", "-shared", "linked.o", "plugin.o", "use.o", *program.line)
    build.run(*host, "-L.", "-Lruntime", "-lcudart", "-o", "plugin.so")
    libraries = [word for word in program.line if word.endswith(".so")]
    write_uses(build, "loaded", sorted(set("".join(used for _, used in program.libraries))))
    loader = (
        "g++",
        "loader.cc",
        "loaded.o",
        "-Wl,--no-as-needed",
        *libraries,
        "-Lruntime",
        "-lcudart",
        "-ldl",
    )
    return messages, start(build, [*loader, "-o", "prog"])


def make_library(build: HostBuild, name: str, kind: str, modules: str) -> None:
    """Compile and link a library of a kind."""
    objects = [f"{module}.o" for module in modules]
    if kind == "open":
        build.library(name, objects)
    elif kind == "final":
        build.run(build.nvcc, "-arch=sm_90", "-shared", "-dlink", "-Xcompiler", "-fPIC", *objects,
                  "-o", "final.o")  # fmt: skip
        needed = [f"-lopen{module}" for module in modules]
        build.run("g++", "-shared", "final.o", "-Wl,--no-as-needed", "-L.", *needed, "-o", name)
    else:
        flags = {"symbolic": ["-Xlinker", "-Bsymbolic"],
                 "hidden": ["-Xlinker", "--version-script=hiding.map"]}  # fmt: skip
        build.closed(name, objects, *flags.get(kind, []))


def write_uses(build: HostBuild, name: str, modules: list[str]) -> None:
    """Compile a host function that calls the host functions of these modules."""
    declared = "".join(f"void {module}_host(int *);" for module in modules)
    called = "".join(f"{module}_host(nullptr);" for module in modules)
    build.write(use_cc=f'{declared} extern "C" void {name}() {{ {called} }}')
    build.run("g++", "-fPIC", "-c", "use.cc", "-o", f"{name}.o")


def start(build: HostBuild, link: Sequence[str]) -> Log | None:
    """Link and run a program.

    Return its log, None if the host linker refuses it, which users see.
    """
    try:
        build.run(*link)
    except Failed:
        return None
    try:
        return build.start("prog")
    except Failed as failed:
        # Registration code writes after the end of its table if modules call it too often.
        return Log(f"use ?: none, {failed}")
