"""pylink in nvJitLink's place answers as the real library does: results, logs, linked bytes."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import demo, jitlink_client, oracle
from helpers.compare import compare
from helpers.jitlink_client import Reply, Request, Step

from pylink.jitlink import real

pytestmark = oracle.needs_oracle

CLIENT = Path(jitlink_client.__file__)

CUBIN, PTX, LTOIR, FATBIN, OBJECT, LIBRARY, INDEX, ANY = 1, 2, 3, 4, 5, 6, 7, 10

CALLEE = "__device__ int twice(int a) { return 2 * a; }"
CALLER = "__device__ int twice(int a); __global__ void k(int *p) { *p = twice(*p); }"
UNUSED = CALLER + " __global__ void never(int *p) { *p = 3; }"


def run(where: str, requests: list[Request]) -> list[Reply]:
    """The replies of one process; it must end well, with whatever handles it leaves."""
    done = subprocess.run(
        [sys.executable, str(CLIENT), where],
        input=pickle.dumps(requests),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    replies: list[Reply] = pickle.loads(done.stdout)
    return replies


def both(requests: list[Request]) -> list[tuple[Reply, Reply]]:
    """What the stand-in and the real library answer."""
    library = real.find(13)
    assert library is not None
    return list(zip(run("standin", requests), run(library, requests), strict=True))


def check(requests: list[Request]) -> None:
    for request, (ours, theirs) in zip(requests, both(requests), strict=True):
        options = request[0]
        assert ours[0] == theirs[0], options
        for log in ("ErrorLog", "InfoLog"):
            assert timeless(ours[1][log]) == timeless(theirs[1][log]), options
        image, expected = ours[1]["LinkedCubin"], theirs[1]["LinkedCubin"]
        if expected:
            assert compare(image, expected) == [], options


def timeless(log: bytes) -> bytes:
    return re.sub(rb": [0-9.]+\n", b": -\n", log)


def data(kind: int, contents: bytes, name: bytes | None = b"x") -> Step:
    return ("data", kind, contents, name)


DONE: Step = ("complete",)


@pytest.fixture(scope="module")
def pair() -> list[bytes]:
    return [oracle.compile(text, "90a") for text in (UNUSED, CALLEE)]


@pytest.mark.parametrize("arch", demo.ARCHES)
def test_cubins(arch: str) -> None:
    """By both ways of adding, with every option that a link of cubins can have."""
    files = demo.cubins(arch)
    given = [data(CUBIN, file.read_bytes(), file.name.encode()) for file in files]
    named = [("file", CUBIN, str(file)) for file in files]
    found = [data(ANY, file.read_bytes(), None) for file in files]
    extra = ["-r", "-g", "-verbose", "-time", "-lineinfo", "-O3", "-maxrregcount=32", "-ftz=1"]
    extra += ["-no-cache", "-optimize-unused-variables", "-split-compile=2", "-Xptxas=-v"]
    base = f"-arch={arch}"
    requests: list[Request] = [([base], [*steps, DONE]) for steps in (given, named, found)]
    requests += [([base, option], [*given, DONE]) for option in extra]
    check(requests)


def test_kernels_used(pair: list[bytes]) -> None:
    steps = [data(CUBIN, cubin) for cubin in pair]
    used = [["-kernels-used=_Z1kPi"], ["-kernels-used=_Z1kPi", "-kernels-used=_Z5neverPi"]]
    check([(["-arch=sm_90a", *words], [*steps, DONE]) for words in used])


def test_inputs_of_every_kind(pair: list[bytes], tmp_path: Path) -> None:
    """Host objects, fat binaries and archives, by their type and as any."""
    objects = compile_objects(tmp_path)
    archive = tmp_path / "lib.a"
    subprocess.run(["ar", "rcs", archive, *objects], check=True)
    fatbin = make_fatbin(tmp_path, pair[0])
    kinds = {
        OBJECT: [data(OBJECT, path.read_bytes(), path.name.encode()) for path in objects],
        LIBRARY: [data(LIBRARY, archive.read_bytes(), b"lib.a")],
        FATBIN: [data(FATBIN, fatbin), data(CUBIN, pair[1])],
    }
    requests: list[Request] = []
    for steps in kinds.values():
        requests.append((["-arch=sm_90a"], [*steps, DONE]))
        anything = [("data", ANY, *step[2:]) for step in steps]
        requests.append((["-arch=sm_90a"], [*anything, DONE]))
    requests.append((["-arch=sm_90a"], [("file", LIBRARY, str(archive)), DONE]))
    check(requests)


def test_what_compilers_take_goes_on(pair: list[bytes], tmp_path: Path) -> None:
    """PTX and LTO-IR, alone, with cubins before and behind, and inside of containers."""
    caller = oracle.compile_ptx(CALLER, "90a").encode()
    callee = oracle.compile_ptx(CALLEE, "90a").encode()
    base = "-arch=sm_90a"
    objects = compile_objects(tmp_path, code="compute_90")
    requests: list[Request] = [
        ([base], [data(PTX, caller), data(PTX, callee + b"\0"), DONE]),
        ([base], [data(ANY, caller + b"\0"), data(CUBIN, pair[1]), DONE]),
        ([base], [data(CUBIN, pair[1]), data(PTX, caller), DONE]),
        ([base], [data(PTX, b".version 8.0\n.target sm_90\nbogus\n\0"), DONE]),
        (
            [base],
            [*(data(OBJECT, path.read_bytes(), path.name.encode()) for path in objects), DONE],
        ),
        ([base, "-lto", "-ptx"], [DONE]),
        ([base, "-ptx"], []),
    ]
    check(requests)


def test_files_that_do_not_agree() -> None:
    """nvJitLink links them all, and ends where something is undefined."""
    use = "__global__ void {}(int *p) {{ *p = grid[*p]; }}"
    texts = {
        "first": f"__device__ int grid[100]; {use.format('k')}",
        "again": f"__device__ int grid[100]; {use.format('l')}",
        "larger": f"__device__ int grid[101]; {use.format('m')}",
        "smaller": f"extern __device__ int grid[90]; {use.format('n')}",
        "other": f"extern __device__ int grid[80]; {use.format('o')}",
        "constant": f"__constant__ int grid[100]; {use.format('q')}",
        "managed": f"__managed__ int grid[100]; {use.format('r')}",
        "managed elsewhere": f"extern __managed__ int grid[100]; {use.format('s')}",
    }
    made = {name: oracle.compile(text, "90a") for name, text in texts.items()}
    pairs = [("first", name) for name in texts if name != "first"]
    pairs += [("smaller", "first"), ("constant", "first"), ("smaller", "other")]
    pairs += [("managed", "first"), ("managed elsewhere", "first"), ("managed", "smaller")]
    steps = [[data(CUBIN, made[name], name.encode()) for name in names] for names in pairs]
    requests: list[Request] = [(["-arch=sm_90a"], [*two, DONE]) for two in steps]
    for names, (ours, theirs) in zip(pairs, both(requests), strict=True):
        assert ours[0] == theirs[0], names
        assert bool(ours[1]["LinkedCubin"]) == bool(theirs[1]["LinkedCubin"]), names


def test_refusals(pair: list[bytes], tmp_path: Path) -> None:
    """Wrong types, architectures, names and options; the link goes on without what is refused."""
    base, cubin = "-arch=sm_90a", pair[0]
    text = tmp_path / "text"
    text.write_text("no device code")
    requests: list[Request] = [([base], [data(kind, cubin), DONE]) for kind in (0, 2, 3, 4, 6, 7)]
    requests += [([base], [data(kind, cubin), DONE]) for kind in (8, 9, 11)]
    requests += [([base], [data(kind, b"text " * 40), DONE]) for kind in (CUBIN, OBJECT, ANY)]
    requests += [
        ([base], [data(CUBIN, cubin, b"first"), DONE]),
        ([base], [data(CUBIN, pair[1], b"first"), data(CUBIN, pair[1], b"second"), DONE]),
        ([base], [data(CUBIN, oracle.compile(CALLEE, "80"), b"old"), DONE]),
        ([base], [("file", CUBIN, str(tmp_path / "missing")), DONE]),
        ([base], [("file", CUBIN, str(text)), DONE]),
        ([base], [data(CUBIN, pair[1]), DONE, DONE, data(CUBIN, cubin, b"late")]),
        ([base], [DONE]),
        ([], []),
        (["-O3"], []),
        (["-arch=sm_12"], []),
        (["-arch=bogus"], []),
        (["-arch=compute_90"], []),
        ([base, "-bogus"], []),
        ([base, "-O1"], []),
        ([base, "--arch=sm_90"], []),
    ]
    ours_and_theirs = both(requests)
    for request, (ours, theirs) in zip(requests, ours_and_theirs, strict=True):
        assert ours[0] == theirs[0], request[0]
        assert first_line(ours[1]["ErrorLog"]) == first_line(theirs[1]["ErrorLog"]), request[0]


def first_line(log: bytes) -> bytes:
    """Behind the first error nvJitLink goes on with what is left of the link, and says more."""
    return log.partition(b"\n")[0]


def compile_objects(folder: Path, code: str = "sm_90a") -> list[Path]:
    """Host objects of the program, with machine code or with PTX alone."""
    made = []
    arch = "compute_90a" if code.startswith("sm_") else code
    for name, text in (("caller", UNUSED), ("callee", CALLEE)):
        source, target = folder / f"{name}.cu", folder / f"{name}_{code}.o"
        source.write_text(text)
        nvcc = oracle.toolchain().tool("nvcc")
        code_option = f"-gencode=arch={arch},code={code}"
        subprocess.run([nvcc, "-dc", code_option, source, "-o", target], check=True)
        made.append(target)
    return made


def make_fatbin(folder: Path, cubin: bytes) -> bytes:
    """A fat binary with one cubin, by the tool that nvcc runs for it."""
    source, target = folder / "one.cubin", folder / "one.fatbin"
    source.write_bytes(cubin)
    tool = oracle.toolchain().tool("fatbinary")
    image = f"--image3=kind=elf,sm=90a,file={source}"
    subprocess.run([tool, "-64", f"--create={target}", image], check=True)
    return target.read_bytes()
