"""Random processes: a program, the libraries that it needs, and plugins that it opens.

Modules `a` to `d` of `registered_programs` are shared between libraries, archives and plugins; each
plugin has a module of its own, and is opened with RTLD_LOCAL or RTLD_GLOBAL.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from helpers.host_build import Failed, HostBuild, Log
from helpers.registered_programs import HIDING, KINDS, MODULE, MODULES, make_library, write_uses

PLUGIN = """\
extern "C" void use{number}();
__global__ void plugin{number}_kernel(int *p) {{ *p = 4; }}
extern "C" void run{number}() {{ plugin{number}_kernel<<<1, 1>>>(nullptr); use{number}(); }}
"""
LOADER = """\
#include <cstdio>
#include <dlfcn.h>
{declared}
static void open(const char *file, const char *run, int mode)
{{
    void *plugin = dlopen(file, RTLD_NOW | mode);
    if (!plugin)
        std::printf("use ?: none, %s\\n", dlerror());
    else
        ((void (*)())dlsym(plugin, run))();
}}
int main()
{{
{opened}
    std::puts("end of main");
}}
"""
PLUGINS = 3


@dataclass
class Plugin:
    """A plugin: `archived` modules are in an archive of its link, `contained` ones in objects.

    `libraries` are numbers of the process's libraries in its link. `flag` is for the host linker.
    """

    archived: str
    contained: str
    libraries: list[int]
    flag: str
    is_global: bool


@dataclass
class Process:
    """A program that needs `libraries`, pairs of a kind and modules, and opens all plugins."""

    has_device_code: bool
    libraries: list[tuple[str, str]]
    plugins: list[Plugin]

    @property
    def words(self) -> list[str]:
        """The arguments of `pylink audit` that name the files."""
        arguments = ["prog"]
        for number, plugin in enumerate(self.plugins):
            arguments += [
                "--plugin-global" if plugin.is_global else "--plugin",
                f"plugin{number}.so",
            ]
        return [*arguments, "-L", "."]


def draw(seed: int) -> Process:
    """Return the random process of a seed."""
    chance = random.Random(seed)

    def pick(least: int, most: int) -> str:
        """Return a random choice of modules, in order."""
        return "".join(sorted(chance.sample(MODULES, chance.randint(least, most))))

    has_device_code = chance.random() < 0.5
    kinds = [kind for kind in KINDS if kind != "final" and (has_device_code or kind != "open")]
    libraries = [(chance.choice(kinds), pick(1, 2)) for _ in range(chance.randint(0, 2))]
    plugins = []
    for _ in range(chance.randint(1, PLUGINS)):
        contained = pick(0, 1)
        archived = "".join(name for name in pick(0, 2) if name not in contained)
        linked_numbers = [number for number in range(len(libraries)) if chance.random() < 0.6]
        flag = chance.choice(("", "-Wl,-Bsymbolic", "-Wl,--version-script=hiding.map"))
        plugins.append(Plugin(archived, contained, linked_numbers, flag, chance.random() < 0.4))
    return Process(has_device_code, libraries, plugins)


def prepare(build: HostBuild) -> None:
    """Compile the files that all processes share."""
    for name in MODULES:
        build.write(**{f"{name}_cu": MODULE.format(name=name)})
        build.compile(f"{name}.cu", "-rdc=true")
    for number in range(PLUGINS):
        build.write(**{f"plugin{number}_cu": PLUGIN.format(number=number)})
        build.compile(f"plugin{number}.cu", "-rdc=true")
    build.write(own_cu="__global__ void own_kernel(int *p) { *p = 5; }\n"
                "void own() { own_kernel<<<1, 1>>>(nullptr); }\n", hiding_map=HIDING)  # fmt: skip
    build.compile("own.cu", "-rdc=true")


def run(build: HostBuild, process: Process) -> Log | None:
    """Build and run a process; return its log, None if a linker refuses a part of it."""
    for number, (kind, modules) in enumerate(process.libraries):
        make_library(build, f"lib{number}.so", kind, modules)
    libraries = [f"lib{number}.so" for number in range(len(process.libraries))]
    device = [str(build.nvcc), "-arch=sm_90", "-dlink", "-L.", "-Xcompiler", "-fPIC"]
    runtime = ["-L.", "-Lruntime", "-lcudart", "-ldl"]
    try:
        for number, plugin in enumerate(process.plugins):
            _make_plugin(build, number, plugin, process, device, runtime)
        calls = "".join(
            f'    open("./plugin{number}.so", "run{number}", '
            f"{'RTLD_GLOBAL' if plugin.is_global else 'RTLD_LOCAL'});\n"
            for number, plugin in enumerate(process.plugins)
        )
        declared = 'extern "C" void loaded();\n'
        if process.has_device_code:
            declared += "void own();\n"
            calls = "    own();\n" + calls
        build.write(loader_cc=LOADER.format(declared=declared, opened=f"    loaded();\n{calls}"))
        used = sorted(set("".join(modules for _, modules in process.libraries)))
        write_uses(build, "loaded", used)
        objects = ["loaded.o"]
        if process.has_device_code:
            build.run(*device, "own.o", *libraries, "-o", "linked.o")
            objects += ["own.o", "linked.o"]
        build.run("g++", "loader.cc", *objects, "-Wl,--no-as-needed", *libraries, *runtime,
                  "-o", "prog")  # fmt: skip
    except Failed:
        return None
    try:
        return build.start("prog")
    except Failed as failed:
        # Registration code writes after the end of its table if modules call it too often.
        return Log(f"use ?: none, {failed}")


def _make_plugin(
    build: HostBuild,
    number: int,
    plugin: Plugin,
    process: Process,
    device: list[str],
    runtime: list[str],
) -> None:
    """Compile and link a plugin; `device` and `runtime` are options of both links."""
    line = [f"plugin{number}.o", *(f"{name}.o" for name in plugin.contained)]
    line += [f"lib{library}.so" for library in plugin.libraries]
    if plugin.archived:
        archive = f"archive_{plugin.archived}.a"
        (build.folder / archive).unlink(missing_ok=True)
        build.run("ar", "rcs", archive, *(f"{name}.o" for name in plugin.archived))
        line.append(archive)
    used = set(plugin.archived + plugin.contained)
    used.update(*(process.libraries[library][1] for library in plugin.libraries))
    write_uses(build, f"use{number}", sorted(used))
    build.run(*device, "-shared", *line, "-o", "linked.o")
    flags = [plugin.flag] if plugin.flag else []
    build.run("g++", "-shared", *flags, "linked.o", f"use{number}.o", *line, *runtime,
              "-o", f"plugin{number}.so")  # fmt: skip
