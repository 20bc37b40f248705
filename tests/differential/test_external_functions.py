"""Lists of what a kernel calls that the driver supplies: EIATTR_EXTERNS, whose order differs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from helpers import older, oracle
from helpers.side_by_side import THEIRS, output_differences

SUPPLIED = ("malloc", "free", "vprintf", "__assertfail")
CALL = "{{ .param .b64 x; .param .b64 y; st.param.b64 [x], %v; call (y), {}, (x); }}\n"
FUNCTION = (
    "{} (.param .b64 r) {} (.param .b64 a) {{ .reg .b64 %v; ld.param.b64 %v, [a];\n{}ret; }}\n"
)
KERNEL = ".visible .entry {}(.param .u64 p) {{ .reg .b64 %v; ld.param.b64 %v, [p];\n{}ret; }}\n"
HEAD = ".version {}\n.target sm_{}\n.address_size 64\n"
# A sanitizer's functions call malloc and free; the kernels here do not.
SANITIZED = """
__device__ __noinline__ int reads(int *p, int n) { return p[n]; }
__global__ void lone(int *p, int n) { int own[9] = {}; own[n] = reads(p, n); p[n] = own[p[1]]; }
"""


def calls(names: list[str]) -> str:
    return "".join(CALL.format(name) for name in names)


def some(rng: Random, names: list[str] | tuple[str, ...], most: int) -> list[str]:
    return rng.sample(names, min(len(names), rng.randint(0, most)))


def program(rng: Random, arch: str, version: str) -> list[str]:
    """PTX of one to three files with functions, weak copies of some, and one kernel or two."""
    count = rng.randint(1, 3)
    strong = [[f"f{file}_{row}" for row in range(rng.randint(0, 3))] for file in range(count)]
    weak = {f"w{row}": some(rng, SUPPLIED, 3) for row in range(rng.randint(0, 2))}
    homes = {name: rng.sample(range(count), rng.randint(1, count)) for name in weak}
    everything = [name for names in strong for name in names] + list(weak)
    kernels = [rng.randrange(count) for _ in range(rng.choice((1, 1, 2)))]
    files = []
    for file in range(count):
        own = [*strong[file], *(name for name in weak if file in homes[name])]
        rng.shuffle(own)
        used: set[str] = set()
        body = ""
        for name in own:
            names = list(weak.get(name) or some(rng, SUPPLIED, 3))
            rng.shuffle(names)
            used.update(names)
            linkage = ".weak .func" if name in weak else ".visible .func"
            body += FUNCTION.format(linkage, name, calls(names))
        for number, home in enumerate(kernels):
            if home == file:
                names = some(rng, SUPPLIED, 2) + [n for n in everything if rng.random() < 0.8]
                rng.shuffle(names)
                used.update(names)
                body += KERNEL.format(f"k{number}", calls(names))
        foreign = sorted(used - set(own))
        rng.shuffle(foreign)
        declared = [FUNCTION.format(".extern .func", name, "") for name in foreign]
        declared += [FUNCTION.format(".weak .func", name, "") for name in own if name in weak]
        declared += [
            FUNCTION.format(".visible .func", name, "") for name in own if name not in weak
        ]
        heads = "".join(line.partition("{")[0] + ";\n" for line in declared)
        files.append(HEAD.format(version, arch) + heads + body)
    return files


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_their_order(tmp_path: Path, release: str, seed: int) -> None:
    rng = Random(seed)
    arch = rng.choice(("80", "90", "100"))
    names = []
    with oracle.release(release):
        for number, text in enumerate(program(rng, arch, older.ptx_version(release))):
            names.append(f"{number}.cubin")
            (tmp_path / names[-1]).write_bytes(oracle.assemble(text, arch, ["-O1"]))
        target = f"-arch=sm_{arch}"
        assert output_differences(tmp_path, [target, "-r", *names]) == []
        (tmp_path / THEIRS).rename(tmp_path / "stage.cubin")
        options = rng.choice(((), ("-g",), ("--preserve-relocs",)))
        for inputs in (names, ["stage.cubin"]):
            assert output_differences(tmp_path, [target, *options, *inputs]) == []


@pytest.mark.parametrize("arch", ["80", "90", "100"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_those_of_a_sanitizer(tmp_path: Path, release: str, arch: str) -> None:
    with oracle.release(release):
        text = oracle.compile_ptx(SANITIZED, oracle.PTX_ARCH[arch])
        (tmp_path / "m.cubin").write_bytes(oracle.assemble(text, arch, ["-sanitize=memcheck"]))
        assert output_differences(tmp_path, [f"-arch=sm_{arch}", "m.cubin"]) == []
