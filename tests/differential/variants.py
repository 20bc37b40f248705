"""The ways one program is linked: options, order of inputs, second stages, and broken links."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers import oracle
from helpers.programs import Program


@dataclass(frozen=True)
class Link:
    """One linker run over files of a case folder.

    `first` are runs that make some of the inputs, `archives` are made of files of the case. A file
    `mN.o` is the host object of the module whose cubin is `mN.cubin`.
    """

    inputs: tuple[str, ...]
    options: tuple[str, ...]
    arch: str
    first: tuple[tuple[str, Link], ...] = ()
    archives: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def argv(self, output: str) -> list[str]:
        """Arguments after the tool's name."""
        return [f"-arch=sm_{self.arch}", *self.options, *self.inputs, "-o", output]


Variant = Callable[[Program, str, Sequence[str]], Link | None]


def _library(program: Program) -> tuple[str, ...]:
    return device_runtime_options() if program.device_runtime else ()


def device_runtime_options() -> tuple[str, ...]:
    """Options that add the device runtime library of the oracle."""
    return (f"--library-path={oracle.device_runtime()}", "--library=cudadevrt")


def _options(*options: str) -> Variant:
    def variant(program: Program, arch: str, cubins: Sequence[str]) -> Link:
        return Link(tuple(cubins), (*options, *_library(program)), arch)

    return variant


def _order(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    shuffled = list(cubins)
    random.Random(f"order {program.seed}").shuffle(shuffled)
    return Link(tuple(shuffled), _library(program), arch) if shuffled != list(cubins) else None


def _relink(program: Program, arch: str, cubins: Sequence[str]) -> Link:
    first = Link(tuple(cubins), ("-r",), arch)
    return Link(("stage1.cubin",), _library(program), arch, (("stage1.cubin", first),))


def _relink_debug(_program: Program, arch: str, cubins: Sequence[str]) -> Link:
    first = Link(tuple(cubins), ("-r",), arch)
    return Link(("stage1.cubin",), ("-g",), arch, (("stage1.cubin", first),))


def _relink_part(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    if len(cubins) < 2:
        return None
    cut = (len(cubins) + 1) // 2
    first = Link(tuple(cubins[:cut]), ("-r",), arch)
    inputs = ("part1.cubin", *cubins[cut:])
    return Link(inputs, _library(program), arch, (("part1.cubin", first),))


def _relink_r(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    link = _relink_part(program, arch, cubins)
    return link and Link(link.inputs, ("-r",), arch, link.first)


def _hosts(program: Program, cubins: Sequence[str]) -> tuple[str, ...]:
    """What nvcc -c makes of each module; of one in PTX it makes nothing but a cubin."""
    return tuple(
        cubin if module.name.endswith(".ptx") else f"{Path(cubin).stem}.o"
        for module, cubin in zip(program.modules, cubins, strict=True)
    )


def _host(*options: str) -> Variant:
    def variant(program: Program, arch: str, cubins: Sequence[str]) -> Link:
        return Link(_hosts(program, cubins), (*options, *_library(program)), arch)

    return variant


def _archive(*options: str) -> Variant:
    """The first host object as a file, the others as members of an archive behind it."""

    def variant(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
        hosts = _hosts(program, cubins)
        members = tuple(name for name in hosts[1:] if name.endswith(".o"))
        if not members:
            return None
        inputs = tuple(name for name in hosts if name not in members)
        given = (*options, *_library(program))
        if "--library=m" not in options:
            inputs = (*inputs, "libm.a")
        return Link(inputs, given, arch, archives=(("libm.a", members),))

    return variant


def _relink_archive(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    """An output of -r in front of an archive with the other modules."""
    if len(cubins) < 2:
        return None
    cut = (len(cubins) + 1) // 2
    first = Link(tuple(cubins[:cut]), ("-r",), arch)
    rest = _hosts(program, cubins)[cut:]
    members = tuple(name for name in rest if name.endswith(".o"))
    inputs = ("part1.cubin", *(name for name in rest if name not in members), "librest.a")
    made = (("part1.cubin", first),)
    return (
        Link(inputs, _library(program), arch, made, (("librest.a", members),)) if members else None
    )


def _chosen(names: Sequence[str], seed: str) -> str:
    rng = random.Random(seed)
    return ",".join(sorted(rng.sample(list(names), max(1, len(names) // 2))))


def _kernels_used(program: Program, arch: str, cubins: Sequence[str]) -> Link:
    chosen = _chosen(program.kernels, f"kernels {program.seed}")
    return Link(tuple(cubins), (f"--kernels-used={chosen}", *_library(program)), arch)


def _variables_used(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    if not program.variables:
        return None
    chosen = _chosen(program.variables, f"variables {program.seed}")
    return Link(tuple(cubins), (f"--variables-used={chosen}",), arch)


def _both_used(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    variables = _variables_used(program, arch, cubins)
    kernels = _kernels_used(program, arch, cubins)
    return variables and Link(tuple(cubins), (*kernels.options, *variables.options), arch)


def _used_and(option: str) -> Variant:
    """A selection in a link that keeps all code."""

    def variant(program: Program, arch: str, cubins: Sequence[str]) -> Link:
        link = _both_used(program, arch, cubins) or _kernels_used(program, arch, cubins)
        return Link(link.inputs, (option, *link.options), arch)

    return variant


def _device_runtime(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    """The library beside a program that does not need it."""
    if program.device_runtime:
        return None
    return Link(tuple(cubins), device_runtime_options(), arch)


# Another arch that takes cubins of the key. From sm_100 on only the suffix changes: for another
# number nvlink schedules the instructions anew.
NEWER = {"80": "86", "86": "89", "90": "90a", "90a": "90", "100": "100a", "100a": "100f"}
NEWER |= {"103": "103a", "110": "110f", "120": "120a", "121": "121f"}


def _newer(program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    if arch not in NEWER:
        return None
    return Link(tuple(cubins), _library(program), NEWER[arch])


def _duplicate(_program: Program, arch: str, cubins: Sequence[str]) -> Link:
    return Link((*cubins, cubins[0]), (), arch)


def _undefined(_program: Program, arch: str, cubins: Sequence[str]) -> Link | None:
    return Link(tuple(cubins[1:]), (), arch) if len(cubins) > 1 else None


def _wrong_arch(_program: Program, arch: str, cubins: Sequence[str]) -> Link:
    return Link(tuple(cubins), (), "80" if arch == "75" else "75")


def _missing_file(_program: Program, arch: str, cubins: Sequence[str]) -> Link:
    return Link((*cubins, "no-such-file.cubin"), (), arch)


VARIANTS: dict[str, Variant] = {
    "exec": _options(),
    "r": _options("-r"),
    "order": _order,
    "relink": _relink,
    "relink2": _relink_part,
    "relink-r": _relink_r,
    "relink-g": _relink_debug,
    "r-g": _options("-r", "-g"),
    "r-preserve": _options("-r", "-preserve-relocs"),
    "newer": _newer,
    "g": _options("-g"),
    "g-suppress": _options("-g", "-suppress-debug-info"),
    "preserve": _options("-preserve-relocs"),
    "preserve-g": _options("-preserve-relocs", "-g"),
    "kernels-used": _kernels_used,
    "kernels-unused": _options("--kernels-used=no_such_kernel"),
    "variables-used": _variables_used,
    "both-used": _both_used,
    "r-used": _used_and("-r"),
    "preserve-used": _used_and("-preserve-relocs"),
    "g-used": _used_and("-g"),
    "device-runtime": _device_runtime,
    "host": _host(),
    "host-r": _host("-r"),
    "host-g": _host("-g"),
    "host-all": _host("-ignore-host-info"),
    "archive": _archive(),
    "archive-r": _archive("-r"),
    "archive-l": _archive("--library-path=.", "--library=m"),
    "archive-relink": _relink_archive,
    "callgraph": _options("-dump-callgraph"),
    "callgraph-raw": _options("-dump-callgraph-no-demangle"),
    "verbose": _options("-v"),
    "extrawarn": _options("-extrawarn"),
    "werror": _options("-Werror"),
    "werror-w": _options("-Werror", "-w"),
    "report-arch": _options("-report-arch"),
    "duplicate": _duplicate,
    "undefined": _undefined,
    "wrong-arch": _wrong_arch,
    "missing-file": _missing_file,
}

# Variants that need an archive.
LIBRARY = {"device-runtime"}

# Variants whose text is the point: they are judged by the command line, not the API.
TEXT = {
    "callgraph",
    "callgraph-raw",
    "verbose",
    "extrawarn",
    "werror",
    "werror-w",
    "report-arch",
    "duplicate",
    "undefined",
    "wrong-arch",
    "missing-file",
}
