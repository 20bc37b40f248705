"""What kernels take over from the attributes of the functions that they reach equals nvlink's.

Records of every attribute are planted in functions that kernels reach in every way: by a call, over
other functions, through a pointer, by recursion, and as kernels that device code launches.
"""

from __future__ import annotations

import difflib
import random
from pathlib import Path
from typing import Any, cast

import pytest
from helpers import oracle
from helpers.attributes import BVAL, HVAL, NVAL, SVAL, Record, plant
from helpers.compare import compare
from helpers.fatbin_builder import SEGMENT, container, entry, host_object

import pylink
from pylink.command.cli import main
from pylink.facts.inheritance import INHERITED

pytestmark = oracle.needs_oracle

KERNELS = """
extern __device__ int called(int), deep(int), again(int);
extern __device__ int (*table[2])(int);
__device__ void *slot[2];
extern "C" __global__ void childless(int *p) { *p = 1; }
extern "C" __global__ void child(int *p) {
    volatile int a[3] = {*p}; *p = deep(*p) + a[*p % 3];
}
extern "C" __global__ void parent(int *p) { slot[0] = (void *)child; *p = called(*p); }
extern "C" __global__ void pointing(int *p) { *p = table[*p & 1](*p); }
extern "C" __global__ void recursive(int *p) {
    volatile int a[5] = {*p}; *p = again(*p) + a[*p % 5];
}
"""
FUNCTIONS = """
#include <cstdio>
extern __device__ int deep(int);
__device__ __noinline__ int called(int n) { printf("x"); return deep(n) + 1; }
__device__ __noinline__ int pointed(int n) { return n * 3; }
__device__ __noinline__ int both(int n) { return deep(n) * 5; }
__device__ __noinline__ int unused(int n) { return n * 7; }
__device__ int (*table[2])(int) = {pointed, both};
"""
DEEP = """
__device__ __noinline__ int deep(int n) { void *p = malloc(n); free(p); return n * n; }
__device__ __noinline__ int again(int n) { return n < 2 ? n : again(n - 1) + again(n - 2); }
"""
SOURCES = (KERNELS, FUNCTIONS, DEEP)
NAMES = (
    ("childless", "child", "parent", "pointing", "recursive"),
    ("_Z6calledi", "_Z7pointedi", "_Z4bothi", "_Z6unusedi"),
    ("_Z4deepi", "_Z5againi"),
)
WAYS = ("", "-r", "-g", "--kernels-used=parent", "--kernels-used=parent,recursive", "host:parent",
        "host:parent,pointing", "--variables-used=slot")  # fmt: skip
ARCHS = ("75", "80", "90a", "100", "120")

# Taken out before others are planted: nvlink reads the list of external functions. Compilers write
# one LANGUAGE (0x66) for a function, of which random lists have several.
PLANTED = {
    attribute: form for _, attribute, form, _, _ in INHERITED if attribute not in {0x0F, 0x66}
}
RELEASES = oracle.others()
# EXTERNS, BINDLESS_TEXTURE_BANK, BINDLESS_SURFACE_BANK, SW_WAR, UCODE_SECTION_DATA,
# GRAPHICS_GLOBAL_CBANK and MERCURY_FINALIZER_OPTIONS in a format that ptxas does not give them.
ONE_FORMAT = {0x0F, 0x15, 0x16, 0x36, 0x43, 0x48, 0x5A}


def random_records(rng: random.Random) -> list[Record]:
    chosen = [attribute for attribute in PLANTED if rng.random() < rng.choice((0.1, 0.6))]
    if 0x51 in chosen and 0x52 in chosen and rng.random() < 0.8:
        chosen.remove(0x51)
    rng.shuffle(chosen)
    made = []
    for attribute in chosen:
        form = PLANTED[attribute]
        limit = {NVAL: 0, BVAL: 0xFF, HVAL: 0xFFFF, SVAL: 0}[form]
        value = rng.choice((0, 1, rng.randint(0, 9), limit))
        words = tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 4)))
        made.append(Record(attribute, form, min(value, limit), words if form == SVAL else ()))
    return made


def hosted(image: bytes, arch: str, kernels: str) -> bytes:
    used = b"".join(name.encode() + b"\0" for name in kernels.split(","))
    sections = [("__nv_relfatbin", container(entry(image, int(arch.rstrip("a"))))), SEGMENT]
    return host_object([*sections, (".nvHRKE", used), (".nvHRKI", b"\0")])


def differences(
    cubins: list[bytes], arch: str, way: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> list[str]:
    """How pylink's image, exit status and messages differ from nvlink's."""
    how, _, kernels = way.partition(":")
    names = []
    for number, cubin in enumerate(cubins):
        names.append(f"m{number}.{'o' if kernels else 'cubin'}")
        (folder / names[-1]).write_bytes(hosted(cubin, arch, kernels) if kernels else cubin)
    selection = [] if kernels else how.split()
    options = [f"-arch=sm_{arch}", "-v", "-dump-callgraph", *selection, *names, "-o", "out"]
    expected = oracle.run_nvlink(options, folder, "out")
    (folder / "out").unlink(missing_ok=True)
    capfd.readouterr()
    code = main(options, tool="nvlink")
    said = capfd.readouterr()
    found = []
    if code != expected.code:
        found.append(f"exit status {code}, nvlink {expected.code}")
    # Errors about CTA groups come a little later than nvlink's, by kernel.
    ours, theirs = (
        sorted(text.splitlines(), key=lambda line: line if "is not allowed" in line else "")
        for text in (said.out + said.err, expected.stdout + expected.stderr)
    )
    found += [line for line in difflib.ndiff(ours, theirs) if line[0] in "-+"]
    if expected.image is not None and (folder / "out").is_file():
        found += compare((folder / "out").read_bytes(), expected.image)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("arch", ARCHS)
def test_records_in_every_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arch: str,
    way: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(f"{arch} {way}")
    for _ in range(6):
        cubins = []
        for source, functions in zip(SOURCES, NAMES, strict=True):
            cubin = oracle.compile(source, arch)
            for function in functions:
                cubin = plant(cubin, function, random_records(rng), tuple(PLANTED))
            cubins.append(cubin)
        rng.shuffle(cubins)
        assert differences(cubins, arch, way, tmp_path, capfd) == []


def link_as(release: str, cubins: list[bytes], arch: str, **keywords: Any) -> bytes:
    """Return the image of a link that follows a release."""
    version = cast("Any", release)
    return pylink.link(cubins, arch=f"sm_{arch}", nvlink_version=version, **keywords).image


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("arch", ["90", "100"])
def test_records_in_every_place_by_release(tmp_path: Path, arch: str, release: str) -> None:
    """Later releases have kernels inherit more: for a lone kernel, the order is checked, too."""
    rng = random.Random(f"{arch} {release}")
    with oracle.release(release):
        compiled = [oracle.compile(source, arch) for source in SOURCES]
        for links in range(12):
            cubins = []
            for cubin, functions in zip(compiled, NAMES, strict=True):
                planted = cubin
                for function in functions:
                    records = [record for record in random_records(rng) if record.attribute != 0x52]
                    planted = plant(planted, function, records, tuple(PLANTED))
                cubins.append(planted)
            used = ["parent"] if links % 2 else None
            options = [f"--kernels-used={name}" for name in used or ()]
            expected = oracle.link(cubins, arch, options).image
            assert expected is not None
            assert compare(link_as(release, cubins, arch, kernels_used=used), expected) == []


@pytest.mark.parametrize("release", RELEASES)
def test_every_attribute_by_release(release: str) -> None:
    """No release has kernels inherit an attribute that the table lacks."""
    compared = 0
    with oracle.release(release):
        kernels, functions, deep = (oracle.compile(source, "90") for source in SOURCES)
        for attribute in sorted({*range(1, 0x80)} - ONE_FORMAT):
            record = Record(attribute, HVAL, 5)
            cubins = [kernels, functions, plant(deep, "_Z4deepi", [record], tuple(PLANTED))]
            expected = oracle.link(cubins, "90").image
            if expected is None:
                continue
            assert compare(link_as(release, cubins, "90"), expected) == [], hex(attribute)
            compared += 1
    assert compared > 80


@pytest.mark.parametrize("form", [NVAL, BVAL, HVAL])
@pytest.mark.parametrize("arch", ["80", "90a", "100"])
def test_every_attribute(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arch: str,
    form: int,
) -> None:
    """No attribute moves that is not in the table; nvlink fails at those of other formats."""
    monkeypatch.chdir(tmp_path)
    kernels, functions, deep = (oracle.compile(source, arch) for source in SOURCES)
    compared = set()
    for attribute in sorted({*range(1, 0x72)} - ONE_FORMAT):
        record = Record(attribute, form, 0 if form == NVAL else 5)
        cubins = [kernels, functions, plant(deep, "_Z4deepi", [record], tuple(PLANTED))]
        if oracle.link(cubins, arch).image is None:
            continue
        assert differences(cubins, arch, "", tmp_path, capfd) == [], hex(attribute)
        compared.add(attribute)
    assert {a for a, f in PLANTED.items() if f != SVAL} <= compared
    assert len(compared) > 80


CALLS = ('printf("x");', "n += (long)malloc(n);", "free((void *)(long)n);", "assert(n != 7);")


def calling_program(rng: random.Random) -> list[str]:
    """Sources of functions of all linkages that call what the driver has, and of one kernel."""
    texts, names = [], []
    for number in range(rng.randint(1, 3)):
        text, own = "#include <cstdio>\n#include <cassert>\n", []
        for index in range(rng.randint(1, 5)):
            linkage = rng.choice(("static ", "", "inline "))
            own.append(f"f{number}_{index}")
            body = "".join(rng.sample(CALLS, rng.randint(0, 3)))
            text += (
                f"{linkage}__device__ __noinline__ int {own[-1]}(int n) {{ {body} return n; }}\n"
            )
        uses = " + ".join(f"{name}(n)" for name in rng.sample(own, len(own)))
        names.append(f"all{number}")
        text += f"__device__ __noinline__ int {names[-1]}(int n) {{ return {uses}; }}\n"
        texts.append(text)
    calls = "".join(f"p[{i}] = {name}(p[{i}]);" for i, name in enumerate(names))
    declared = "".join(f"extern __device__ int {name}(int);\n" for name in names[:-1])
    texts[-1] += declared + f'extern "C" __global__ void alone(int *p) {{ {calls} }}\n'
    rng.shuffle(texts)
    return texts


@pytest.mark.parametrize("flags", [(), ("-G",)], ids=["plain", "debug"])
@pytest.mark.parametrize("arch", ["80", "100"])
def test_externals_of_functions_of_all_linkages(arch: str, flags: tuple[str, ...]) -> None:
    """A lone kernel lists them in an order of its own."""
    for seed in range(6):
        cubins = [
            oracle.compile(text, arch, flags)
            for text in calling_program(random.Random(f"externals {seed}"))
        ]
        expected = oracle.link(cubins, arch).image
        assert expected is not None
        assert compare(bytes(pylink.link(cubins, arch=f"sm_{arch}").image), expected) == []
