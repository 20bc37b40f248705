"""Make the golden cases: compile tests/golden/sources and record what nvlink links them to.

    python scripts/make_golden.py

Needs the tools of CUDA 13.0 (pip install '.[oracle]'), for objects of older releases their ptxas
(`tests/helpers/older.py`), and for links of later releases their tools (scripts/install_oracle.py).
Cases whose tools are missing are not changed. A case is written to tests/golden/ARCH/CASE, with a
link.json that contains the exact nvlink command lines. The same tools give the same bytes again.
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
# Cubins with line information name their source file, so all machines compile in this directory.
os.environ["PYLINK_ORACLE_CACHE"] = "/tmp/pylink-golden"
sys.path.insert(0, str(ROOT / "tests"))

from differential import cases
from differential.variants import TEXT, Link
from helpers import older, oracle
from helpers.programs import Module

LINEINFO, DEBUG = ("-lineinfo",), ("-G",)
Modules = tuple[tuple[str, tuple[str, ...]], ...]

# The source files of each case, and the compiler's options for each.
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

# The architectures for which each case is recorded.
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

# Cases with objects of older releases: by case and architecture, the release of the ptxas that
# assembles each module.
OLDER: dict[str, dict[str, tuple[str, str]]] = {
    "calls": {"75": ("11.8", "12.4"), "90a": ("12.9", "13.0"), "100": ("12.8", "12.9")},
    "shared": {"80": ("12.0", "12.9"), "90a": ("12.4", "12.4"), "120": ("12.8", "13.0")},
    "older": {"75": ("11.8", "12.9"), "90a": ("12.9", "12.4"), "100": ("12.8", "12.9")},
}
# Later releases, each of which compiles and links the case `stages`, and the architectures. The
# newest release names sections by other rules, so it also has cases with literal pools, weak copies
# and several kernels.
RELEASES = ("13.1", "13.2", "13.3", "13.4", "13.5")
RELEASE_ARCHS = ("80", "90a", "100")
NEWEST = "13.5"
NEWEST_CASES = ("calls", "shared", "switches", "weak")
NEWEST_ARCHS = ("90a", "100")
# Cases linked by the nvJitLink of a release without nvlink: by release, architecture and case, the
# release of the ptxas that assembles each module.
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
# Name and options of links: those of most cases, and those of single cases; `links` adds more.
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
    """Return the links of a case, by name."""
    if case == "errors":
        other = "80" if arch == "75" else "75"
        return {
            "size-mismatch": Link(("m1.cubin", "m0.cubin"), (), arch),
            "duplicate": Link(("m1.cubin", "m2.cubin", "m1.cubin"), (), arch),
            "undefined": Link(("m2.cubin",), (), arch),
            "wrong-arch": Link(("m1.cubin",), (), other),
            "missing-file": Link(("m1.cubin", "absent.cubin"), (), arch),
        }
    by_name = {name: Link(tuple(cubins), options, arch) for name, options in OPTIONS[case].items()}
    if case == "templates":
        by_name["order"] = Link(tuple(reversed(cubins)), (), arch)
    if case in ("calls", "shared", "switches"):
        first = Link(tuple(cubins), ("-r",), arch)
        by_name["relink"] = Link(("stage1.cubin",), (), arch, (("stage1.cubin", first),))
    return by_name


def release_links(arch: str, cubins: list[str]) -> dict[str, Link]:
    """Return the links of a release's own objects; `relink` links the output of `r` again."""
    return {
        "exec": Link(tuple(cubins), (), arch),
        "r": Link(tuple(cubins), ("-r",), arch),
        "relink": Link(("r.nvlink.cubin",), (), arch),
    }


def older_links(arch: str, cubins: list[str]) -> dict[str, Link]:
    """Return links of older objects: plain, with -r, of that output, and in the opposite order."""
    first = Link(tuple(cubins), ("-r",), arch)
    return {
        "exec": Link(tuple(cubins), (), arch),
        "r": first,
        "order": Link(tuple(reversed(cubins)), (), arch),
        "relink": Link(("stage1.cubin",), (), arch, (("stage1.cubin", first),)),
    }


def library_links(case: str, arch: str, cubins: list[str]) -> dict[str, Link]:
    """Return links of a case that nvJitLink can do: none with -r, and none of such an output."""
    options = {"exec": (), "g": ("-g",), **OPTIONS[case]}
    by_name = {"order": Link(tuple(reversed(cubins)), (), arch)}
    for name in ("exec", "g", "kernels-used"):
        if name in options:
            by_name[name] = Link(tuple(cubins), options[name], arch)
    return by_name


def make(case: str, arch: str, releases: Sequence[str] = (), follow: str = "") -> int:
    """Record one case and return the bytes of its files.

    Without `releases` all is done by 13.0. A single release compiles and links. Several releases
    assemble one module each; 13.0 links them, or with `follow` the nvJitLink of that release.
    """
    release = releases[0] if len(releases) == 1 else oracle.DEFAULT
    with oracle.release(follow or release):
        return record(case, arch, releases, follow)


def record(case: str, arch: str, releases: Sequence[str], follow: str) -> int:
    """Compile, link and write one case with the selected tools; return the bytes of its files."""
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
        links_by_name = library_links(case, arch, cubins)
    elif len(releases) == 1:
        links_by_name = release_links(arch, cubins)
    else:
        links_by_name = older_links(arch, cubins) if releases else links(case, arch, cubins)
    for variant, link in links_by_name.items():
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
    """Record the cases of releases without nvlink whose tools are installed; return their bytes."""
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
