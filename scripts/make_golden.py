"""Make the golden cases: compile tests/golden/sources and record what nvlink links them to.

    python scripts/make_golden.py

Needs the oracle's tools (pip install '.[oracle]'), for objects of older releases their ptxas
(`tests/helpers/older.py`), and for links of later releases their tools (scripts/install_oracle.py);
without those such cases stay as they are. The cases land in tests/golden/ARCH/CASE with a link.json
that holds the exact nvlink command lines; the same tools give the same bytes again.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
# Cubins with line information name their source, so it lies in the same place everywhere.
os.environ["PYLINK_ORACLE_CACHE"] = "/tmp/pylink-golden"
sys.path.insert(0, str(ROOT / "tests"))

from differential import cases
from differential.variants import TEXT, Link
from helpers import older, oracle
from helpers.programs import Module

LINEINFO, DEBUG = ("-lineinfo",), ("-G",)
Modules = tuple[tuple[str, tuple[str, ...]], ...]

MODULES: dict[str, Modules] = {
    "guard": (("guard.cu", ()),),
    "calls": (("calls_main.cu", ()), ("calls_lib.cu", LINEINFO)),
    "shared": (("shared_main.cu", ()), ("shared_lib.cu", ())),
    "weak": (("weak_a.ptx", ()), ("weak_b.ptx", ())),
    "templates": (("templates_a.cu", ()), ("templates_b.cu", ())),
    "runtime": (("runtime.cu", ()),),
    "switches": (("switches.cu", ()), ("switches.cu", ("-DLIBRARY",))),
    "debug": (("debug_plain.cu", ()), ("debug_full.cu", DEBUG)),
    "errors": (("mismatch.cu", ()), ("calls_lib.cu", ()), ("calls_main.cu", ())),
    "older": (("older_main.cu", ()), ("older_lib.cu", LINEINFO)),
    "stages": (("stages_main.cu", ()), ("stages_lib.cu", LINEINFO)),
}

ARCHS = {
    "guard": ("75", "86", "100a", "121"),
    "calls": ("75", "90a", "100"),
    "shared": ("80", "90a", "120"),
    "weak": ("80", "100"),
    "templates": ("75", "103"),
    "runtime": ("75", "100"),
    "switches": ("75", "90a", "100"),
    "debug": ("75", "100"),
    "errors": ("75",),
}

# Objects of older releases: the modules of a case, by arch the ptxas of each module.
OLDER: dict[str, dict[str, tuple[str, str]]] = {
    "calls": {"75": ("11.8", "12.4"), "90a": ("12.9", "13.0"), "100": ("12.8", "12.9")},
    "shared": {"80": ("12.0", "12.9"), "90a": ("12.4", "12.4"), "120": ("12.8", "13.0")},
    "older": {"75": ("11.8", "12.9"), "90a": ("12.9", "12.4"), "100": ("12.8", "12.9")},
}
# Later releases, and what each links of its own objects. The newest names sections by rules of its
# own, so it has a case with literal pools, weak copies and several kernels as well.
RELEASES = ("13.1", "13.2", "13.3", "13.4", "13.5")
RELEASE_ARCHS = ("80", "90a", "100")
NEWEST = "13.5"
NEWEST_CASES = ("calls", "shared", "switches", "weak")
NEWEST_ARCHS = ("90a", "100")
# What is recorded of releases without nvlink: by arch and case the ptxas of each module.
BY_LIBRARY: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {
    "12.9": {
        "75": {"calls": ("12.9", "12.9")},
        "86": {"debug": ("12.9", "12.9")},
        "89": {"weak": ("12.9", "12.4")},
        "90": {"templates": ("12.9", "12.9")},
        "90a": {"calls": ("12.4", "12.9"), "shared": ("12.9", "12.9")},
        "100": {"calls": ("12.9", "12.8")},
        "120": {"shared": ("12.9", "12.9")},
    }
}
BASE = {"exec": (), "r": ("-r",)}
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "guard": BASE,
    "calls": {
        **BASE,
        "g": ("-g",),
        "preserve": ("-preserve-relocs",),
        "kernels-used": ("--kernels-used=reset,no_call",),
        "callgraph": ("-dump-callgraph",),
        "verbose": ("-v",),
        "werror": ("-Werror",),
    },
    "shared": BASE,
    "weak": BASE,
    "templates": {**BASE, "extrawarn": ("-extrawarn",)},
    "runtime": BASE,
    "switches": BASE,
    "debug": {**BASE, "g-suppress": ("-g", "-suppress-debug-info")},
}


def links(case: str, arch: str, cubins: list[str]) -> dict[str, Link]:
    """The links of a case, by name."""
    if case == "errors":
        other = "80" if arch == "75" else "75"
        return {
            "size-mismatch": Link(("m1.cubin", "m0.cubin"), (), arch),
            "duplicate": Link(("m1.cubin", "m2.cubin", "m1.cubin"), (), arch),
            "undefined": Link(("m2.cubin",), (), arch),
            "wrong-arch": Link(("m1.cubin",), (), other),
            "missing-file": Link(("m1.cubin", "absent.cubin"), (), arch),
        }
    made = {name: Link(tuple(cubins), options, arch) for name, options in OPTIONS[case].items()}
    if case == "templates":
        made["order"] = Link(tuple(reversed(cubins)), (), arch)
    if case in ("calls", "shared", "switches"):
        first = Link(tuple(cubins), ("-r",), arch)
        made["relink"] = Link(("stage1.cubin",), (), arch, (("stage1.cubin", first),))
    return made


def release_links(arch: str, cubins: list[str]) -> dict[str, Link]:
    """What each release links of its own objects: both stages, of which the second takes `r`."""
    return {
        "exec": Link(tuple(cubins), (), arch),
        "r": Link(tuple(cubins), ("-r",), arch),
        "relink": Link(("r.nvlink.cubin",), (), arch),
    }


def older_links(arch: str, cubins: list[str]) -> dict[str, Link]:
    """What is linked of objects of older releases: both stages, in either order."""
    first = Link(tuple(cubins), ("-r",), arch)
    return {
        "exec": Link(tuple(cubins), (), arch),
        "r": first,
        "order": Link(tuple(reversed(cubins)), (), arch),
        "relink": Link(("stage1.cubin",), (), arch, (("stage1.cubin", first),)),
    }


def library_links(case: str, arch: str, cubins: list[str]) -> dict[str, Link]:
    """What nvJitLink can link: nothing relocatable, and no second stage."""
    options = {"exec": (), "g": ("-g",), **OPTIONS[case]}
    made = {"order": Link(tuple(reversed(cubins)), (), arch)}
    for name in ("exec", "g", "kernels-used"):
        if name in options:
            made[name] = Link(tuple(cubins), options[name], arch)
    return made


def make(case: str, arch: str, releases: Sequence[str] = (), follow: str = "") -> int:
    """Make one case, with objects of other releases if any is named; returns the bytes it takes.

    A single release links its own objects, several are those whose objects 13.0 links, or the
    library of `follow`.
    """
    own = releases[0] if len(releases) == 1 else oracle.DEFAULT
    with oracle.release(follow or own):
        return record(case, arch, releases, follow)


def record(case: str, arch: str, releases: Sequence[str], follow: str) -> int:
    parts = [case, *releases, *(("as", follow) if follow else ())]
    folder = GOLDEN / arch / "-".join(parts)
    if folder.exists():
        shutil.rmtree(folder)
    modules = [
        Module(name, (GOLDEN / "sources" / name).read_text(), flags)
        for name, flags in MODULES[case]
    ]
    cubins = cases.compile_modules(modules, arch, folder, releases)
    recorded = {}
    if follow:
        made = library_links(case, arch, cubins)
    elif len(releases) == 1:
        made = release_links(arch, cubins)
    else:
        made = older_links(arch, cubins) if releases else links(case, arch, cubins)
    for variant, link in made.items():
        recorded[variant] = cases.record_link(folder, variant, link, keep=variant not in TEXT)
    case_record = {
        "arch": arch,
        "nvlink": f"V{oracle.version()}",
        "sources": [[name, *flags] for name, flags in MODULES[case]],
        "variants": recorded,
    }
    if follow:
        case_record["release"] = follow
    (folder / cases.RECORD).write_text(json.dumps(case_record, indent=1) + "\n")
    return sum(path.stat().st_size for path in folder.iterdir())


def make_by_library() -> int:
    """The cases of releases without nvlink, as far as their tools are there."""
    total = 0
    for follow, by_arch in BY_LIBRARY.items():
        with oracle.release(follow):
            for arch, by_case in by_arch.items():
                for case, releases in by_case.items():
                    if oracle.find() and all(older.find(release) for release in releases):
                        total += make(case, arch, releases, follow)
                    else:
                        print(f"no tools of {follow}: {case} for {arch} stays")
    return total


def main() -> int:
    total = 0
    for case, archs in ARCHS.items():
        for arch in archs:
            total += make(case, arch)
    for case, by_arch in OLDER.items():
        for arch, releases in by_arch.items():
            if all(older.find(release) for release in releases):
                total += make(case, arch, releases)
            else:
                print(f"no ptxas of {', '.join(releases)}: {case} for {arch} stays")
    for release in RELEASES:
        if oracle.find_release(release) is None:
            print(f"no tools of {release}: its links stay")
            continue
        total += sum(make("stages", arch, (release,)) for arch in RELEASE_ARCHS)
        if release == NEWEST:
            for case in NEWEST_CASES:
                total += sum(make(case, arch, (release,)) for arch in NEWEST_ARCHS)
    total += make_by_library()
    print(f"{total} bytes in {GOLDEN}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
