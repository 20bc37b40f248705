"""Archives and libraries: what nvlink makes of the same files, or more where it makes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from differential.check import as_pylink
from helpers import oracle
from helpers.archive_builder import bsd, gnu, thin, write
from helpers.compare import compare
from helpers.fatbin_builder import SEGMENT, container, entry, host_object

from pylink.command.cli import main

pytestmark = oracle.needs_oracle
ARCHS = ("75", "90a", "100")
SM = {"75": 75, "90a": 90, "100": 100}
SOURCES = {
    "main": "__device__ int f(int); __device__ int g(int);\n"
    "__global__ void k(int *p) { *p = f(*p) + g(*p); }\n",
    "f": "__device__ int df = 3;\n__device__ __noinline__ int f(int x) { return x * df; }\n"
    "__global__ void kf(int *p) { *p = f(7); }\n",
    "g": "__device__ int dg = 4;\n__device__ __noinline__ int g(int x) { return x * dg + 1; }\n",
    "h": "__device__ int dh = 5;\n__device__ __noinline__ int h(int x) { return x * dh - 1; }\n"
    "__global__ void kh(int *p) { *p = h(7); }\n",
}


def host(cubin: bytes, arch: str, name: str, kernels: bytes | None, mode: str = "zstd") -> bytes:
    """An object as nvcc makes it; `kernels` are those that its host code names."""
    sections = [
        ("__nv_relfatbin", container(entry(cubin, SM[arch], mode=mode))),
        ("__nv_module_id", b"_12345678_" + name.encode() + b"\0"),
        SEGMENT,
    ]
    if kernels is not None:
        lists = {".nvHRKE": kernels, ".nvHRKI": b"\0", ".nvHRDE": b"\0", ".nvHRDI": b"\0"}
        sections += [*lists.items(), (".nvHRCE", b"\0"), (".nvHRCI", b"\0")]
    return host_object(sections)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str) -> Path:
    """Where `F.cubin` and `F.o` are the compiled sources, and archives of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIBRARY_PATH", raising=False)
    used = {"main": b"_Z1kPi\0"}
    files = {}
    for name, text in SOURCES.items():
        cubin = oracle.compile(text, arch, name=f"{name}.cu")
        files[f"{name}.cubin"] = cubin
        files[f"{name}.o"] = host(cubin, arch, name, used.get(name, b"\0"))
        files[f"{name}.plain.o"] = host(cubin, arch, name, None, "none")
    f, g, h = (files[f"{name}.o"] for name in "fgh")
    empty = host_object([(".text", b"\xc3")])
    arm = host_object([(".text", b"\xc3")], machine=183)
    files |= {
        "libf.a": gnu([("f.o", f)]),
        "libg.a": gnu([("g.o", g)]),
        "liball.a": gnu([("f.o", f), ("g.o", g), ("h.o", h)], index=b"\0\0\0\0"),
        "libwide.a": gnu([("a_long_name_of_a_member.o", f), ("ü.o", g)], index=bytes(8), wide=True),
        "libtwice.a": gnu([("f.o", f), ("f.o", f)]),
        "libmixed.a": gnu([("f.o", f), ("g.cubin", files["g.cubin"])]),
        "libtext.a": gnu([("f.o", f), ("notes.txt", b"text"), ("h.o", h)]),
        "libempty.a": gnu([("f.o", f), ("none", b""), ("h.o", h)]),
        "libnested.a": gnu([("f.o", f), ("h.a", gnu([("h.o", h)]))]),
        "libbsd.a": bsd([("h.o", h)]),
        "libnone.a": gnu([]),
        "libhost.a": gnu([("f.o", f), ("host.o", empty)]),
        "libplain.a": gnu([("f.o", files["f.plain.o"])]),
        "libcubins.a": gnu([("f.cubin", files["f.cubin"]), ("g.cubin", files["g.cubin"])]),
        "libarm.a": gnu([("arm.o", arm)]),
        "libboth.a": gnu([("arm.o", arm), ("f.o", f)]),
        "copy/libf.a": gnu([("f.o", f)]),
        "shared/libf.so": b"",
        "shared/libf.a": gnu([("f.o", f)]),
        "odd/libf.a": gnu([("f.txt", b"text"), ("f.o", f)]),
        "thin.a": thin(["f.o", "g.o"]),
        "away/thin.a": thin(["f.o", "g.o"]),
        "rt/libcudadevrt.a": gnu([("h.o", h)]),
        "rt/two/libcudadevrt.a": gnu([("h.o", h), ("f.o", f)]),
    }
    write(tmp_path, files)
    os.symlink("libf.a", "link.a")
    return tmp_path


SAME = [
    "main.o liball.a",
    "liball.a main.o",
    "main.o -L. -lall",
    "-L. -lall main.o",
    "main.cubin -L. -lall",
    "main.cubin liball.a",
    "liball.a",
    "main.o liball.a --ignore-host-info",
    "main.o -L. -lall -g",
    "main.o -L. -lall -r",
    "main.o -L. -lall -v",
    "main.o libwide.a",
    "main.o -L. -lg -lf",
    "main.o -L. -lf,g",
    "main.o -L. -lf -lg -lf",
    "main.o libf.a ./libf.a link.a -L. -lf g.o",
    "main.o libf.a copy/libf.a g.o",
    "main.o libtwice.a g.o",
    "main.o libmixed.a g.o",
    "main.o libtext.a g.o",
    "main.o libempty.a g.o",
    "main.o libnested.a g.o",
    "main.o liball.a libbsd.a libnone.a",
    "libnone.a",
    "main.o libhost.a g.o",
    "main.o libplain.a g.o",
    "main.o liball.a libcubins.a",
    "main.o f.o g.o -L. -lcubins",
    "main.o f.o g.o -L. -larm",
    "main.o g.o -L. -lboth",
    "main.o g.o -Lcopy/ -L. -lf",
    "main.o f.o g.o -Lshared -L. -lf",
    "main.o g.o -Lodd -L. -lf",
    "main.o thin.a",
    "main.o away/thin.a",
    "main.o liball.a -Lrt -lcudadevrt",
    "main.o g.o -Lrt/two -lcudadevrt",
    "main.o -Lrt/two -lcudadevrt -L. -lg",
    "main.cubin f.cubin rt/libcudadevrt.a g.cubin",
    "main.o liball.a -Lrt -lcudadevrt --keep-system-libraries",
    "main.o liball.a -lall -lm -L.",
]


# Without what nvlink does not say, such as that kernels went since no host code names them.
QUIET = "--notes=no"


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("words", SAME)
@pytest.mark.usefixtures("folder")
def test_links_as_nvlink_does(capfd: pytest.CaptureFixture[str], arch: str, words: str) -> None:
    argv = [f"-arch=sm_{arch}", *words.split(), "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, Path.cwd(), "out.cubin")
    Path("out.cubin").unlink(missing_ok=True)
    code = main([*argv, QUIET])
    assert (code, capfd.readouterr().err) == (expected.code, as_pylink(expected.stderr))
    if expected.code == 0:
        assert expected.image is not None
        assert compare(Path("out.cubin").read_bytes(), expected.image) == []


# What nvlink refuses, and the files in its place that it links to the same output.
MORE = [
    ("main.o libcubins.a", "main.o f.cubin g.cubin"),
    ("main.o -L. -lcubins", "main.o f.cubin g.cubin"),
    ("main.o -L. -l:libf.a g.o", "main.o g.o libf.a"),
    ("main.cubin -l:g.cubin -L. f.cubin", "main.cubin f.cubin g.cubin"),
    ("main.o --whole-archive libcubins.a", "main.o f.cubin g.cubin"),
    ("main.o --lazy-archives liball.a", "main.o f.o g.o"),
    ("--lazy-archives liball.a main.o", "f.o g.o main.o"),
    ("main.o @words", "main.o f.o g.o"),
]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("words", "others"), MORE)
@pytest.mark.usefixtures("folder")
def test_links_what_nvlink_does_not(
    capfd: pytest.CaptureFixture[str], arch: str, words: str, others: str
) -> None:
    Path("words").write_text("f.o\n@more\n")
    Path("more").write_text('"g.o"')
    argv = [f"-arch=sm_{arch}", *words.split(), "-o", "out.cubin"]
    assert oracle.run_nvlink(argv, Path.cwd(), "out.cubin").image is None
    assert (main([*argv, QUIET]), capfd.readouterr().err) == (0, "")
    argv = [f"-arch=sm_{arch}", *others.split(), "-o", "nvlink.cubin"]
    expected = oracle.run_nvlink(argv, Path.cwd(), "nvlink.cubin").image
    assert expected is not None
    assert compare(Path("out.cubin").read_bytes(), expected) == []
