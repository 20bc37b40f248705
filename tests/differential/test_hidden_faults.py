"""Faults that nvlink has few words for: the same line and status, and what it takes to mend them.

Under nvlink's name nothing else is said; under its own name pylink adds notes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.side_by_side import OURS, THEIRS, nvlink, own_messages, pylink

pytestmark = oracle.needs_oracle


def compile(folder: Path, arch: str = "90", **files: str) -> None:
    """Cubins of CUDA sources, by name."""
    for name, text in files.items():
        cubin = oracle.compile(text, arch, name=f"{name}.cu")
        (folder / f"{name}.cubin").write_bytes(cubin)


def notes(folder: Path, words: Sequence[str], *, same: bool = True) -> list[str]:
    """The notes that pylink adds to what nvlink says, which it says alone under nvlink's name."""
    theirs = nvlink(folder, words)
    ours = pylink(folder, words, name="pylink")
    if same:
        assert pylink(folder, words) == theirs
        assert [line for line in ours.lines if not line.startswith("note ")] == theirs.lines
        assert ours.code == theirs.code
    found = [line.removeprefix("note    : ") for line in ours.lines if line.startswith("note ")]
    text = own_messages(folder, words)
    said = pylink(folder, [*words, "--diagnostics_format=sarif"], name="pylink").lines
    results = json.loads(f"[{''.join(said)}]")
    related = [
        location["message"]["text"]
        for result in results
        for location in result.get("relatedLocations", [])
    ]
    for note in found:
        assert note in text
        assert note in related
    return found


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert notes(tmp_path, ["-arch=sm_90", "none.cubin"]) == ["No such file or directory"]
    assert notes(tmp_path, ["-arch=sm_90", "folder"]) == ["Is a directory"]
    assert notes(tmp_path, ["-arch=sm_90", "none.cubin/a.cubin"]) == ["No such file or directory"]


def test_a_file_that_is_no_cubin(tmp_path: Path) -> None:
    words = ["-arch=sm_90", "a.cubin"]
    for data, what in (
        (b"__global__ void k() {}\n" * 9, "source code (compile it with nvcc -dc)"),
        (bytes.fromhex("50ed55ba") + bytes(90), "a fat binary"),
        (b"\x1f\x8b" + bytes(99), "a file that gzip compressed"),
        (b"\x01\x02\x03\xff" * 30, None),
    ):
        (tmp_path / "a.cubin").write_bytes(data)
        found = notes(tmp_path, words, same=False)
        assert found == ([f"it is {what}"] if what else []), data[:8]
    (tmp_path / "a.cubin").write_bytes(b"\x7fELF\2\1\1".ljust(18, b"\0") + b"\xb7\0" + bytes(300))
    assert notes(tmp_path, words, same=False) == ["it is an ELF file for machine 183, AArch64"]
    (tmp_path / "a.txt").write_text("main.o\nb.o\n")
    assert notes(tmp_path, ["-arch=sm_90", "a.txt"], same=False) == ["it is a text"]


def test_a_message_without_a_file(tmp_path: Path) -> None:
    """Under nvlink's name it is nvlink's to the letter; else the place stands behind it."""
    (tmp_path / "a.cubin").write_bytes(b"\x7fELF\2\1\1".ljust(18, b"\0") + b"\x3e\0" + bytes(300))
    words = ["-arch=sm_90", "a.cubin"]
    assert pylink(tmp_path, words) == nvlink(tmp_path, words)
    (first, _) = pylink(tmp_path, words, name="pylink").lines
    assert first == "fatal   : cubin not a device elf? (a.cubin)"


@pytest.mark.parametrize("name", ["a.o", "a.a", "a.fatbin", "a.ptx", "a.cubin", "a"])
@pytest.mark.parametrize("size", [1, 55])
def test_a_short_file_of_no_known_kind(tmp_path: Path, name: str, size: int) -> None:
    """nvlink knows none of less than 56 bytes, and ignores or mistakes longer ones."""
    (tmp_path / name).write_text("x" * size)
    assert notes(tmp_path, ["-arch=sm_90", name]) == ["it is a text"]
    (tmp_path / name).write_bytes(b"\1" * size)
    assert notes(tmp_path, ["-arch=sm_90", name]) == []


def test_no_architecture(tmp_path: Path) -> None:
    compile(tmp_path, a="__global__ void k() {}")
    assert notes(tmp_path, ["a.cubin"]) == ["no target given; use -arch, for example -arch=sm_90"]


def test_another_architecture(tmp_path: Path) -> None:
    compile(tmp_path, a="__global__ void k() {}")
    assert notes(tmp_path, ["-arch=sm_75", "a.cubin"]) == [
        "it was compiled for sm_90; the target is sm_75"
    ]


def test_objects_without_code_for_the_target(tmp_path: Path) -> None:
    nvcc = oracle.toolchain().tool("nvcc")
    both, old = "arch=compute_90,code=[sm_90,compute_90]", "arch=compute_80,code=sm_80"
    for name, arch in (("a", both), ("b", old)):
        (tmp_path / f"{name}.cu").write_text(f"__global__ void {name}() {{}}\n")
        oracle.run([nvcc, "-rdc=true", "-gencode", arch, "-c", f"{name}.cu"], tmp_path)
    hint = (
        "it has code for {}; compile it for the target, or select one of these with -arch (nvcc "
        "defaults to sm_75)"
    )
    assert notes(tmp_path, ["-arch=sm_90", "a.o", "b.o"]) == [hint.format("sm_80")]
    assert notes(tmp_path, ["-arch=sm_75", "a.o"], same=False) == [hint.format("sm_90, compute_90")]
    said = pylink(tmp_path, ["-arch=sm_75", "a.o", "b.o"])
    assert said.code == 255
    assert said.lines[-1] == "error   : No input has code for 'sm_75'"
    assert said.lines[:-1] == nvlink(tmp_path, ["-arch=sm_75", "a.o", "b.o"]).lines


def test_device_code_that_is_not_relocatable(tmp_path: Path) -> None:
    nvcc = oracle.toolchain().tool("nvcc")
    compile(tmp_path, a="__device__ int f(int); __global__ void k(int *p) { *p = f(*p); }")
    (tmp_path / "b.cu").write_text("__device__ int f(int x) { return x; } __global__ void g() {}\n")
    oracle.run([nvcc, "-arch=sm_90", "-c", "b.cu"], tmp_path)
    assert notes(tmp_path, ["-arch=sm_90", "a.cubin", "b.o"]) == [
        "device code in 'b.o' was compiled without -rdc=true (-dc, or CMake's "
        "CUDA_SEPARABLE_COMPILATION), so other files cannot use it"
    ]


@pytest.mark.parametrize("words", [["lib.a"], ["-L.", "-l:lib.a"], ["thin.a"]])
def test_device_code_in_an_archive_that_is_not_relocatable(
    tmp_path: Path, words: list[str]
) -> None:
    nvcc = oracle.toolchain().tool("nvcc")
    compile(tmp_path, a="__device__ int f(int); __global__ void k(int *p) { *p = f(*p); }")
    (tmp_path / "b.cu").write_text("__device__ int f(int x) { return x; } __global__ void g() {}\n")
    oracle.run([nvcc, "-arch=sm_90", "-c", "b.cu"], tmp_path)
    oracle.run(["ar", "crD", "lib.a", "b.o"], tmp_path)
    oracle.run(["ar", "crDT", "thin.a", "b.o"], tmp_path)
    archive = words[-1].removeprefix("-l:")
    (found,) = notes(tmp_path, ["-arch=sm_90", "a.cubin", *words], same=archive != "thin.a")
    assert found.startswith("device code in '")
    assert found.endswith(
        f"{archive}:b.o' was compiled without -rdc=true (-dc, or CMake's "
        "CUDA_SEPARABLE_COMPILATION), so other files cannot use it"
    )


def test_a_function_with_other_parameters(tmp_path: Path) -> None:
    compile(
        tmp_path,
        a="__device__ float area(float w, double h);\n"
        "__global__ void k(float *p) { *p = area(*p, 2); }",
        b="__device__ float area(float w, float h) { return w * h; }\n"
        "__device__ float area(int w) { return w; }\n"
        "__device__ float areas(float w) { return w; }\n",
    )
    assert notes(tmp_path, ["-arch=sm_90", "-r", "a.cubin"]) == []
    assert sorted(notes(tmp_path, ["-arch=sm_90", "a.cubin", "b.cubin"])) == [
        "did you mean 'area(float, float)', defined in b.cubin?",
        "did you mean 'area(int)', defined in b.cubin?",
    ]
    text = "\n\n__device__ float area(float w) { return w; }"
    cubin = oracle.compile(text, "90", ["-lineinfo"], name="c.cu")
    (tmp_path / "c.cubin").write_bytes(cubin)
    (found,) = notes(tmp_path, ["-arch=sm_90", "a.cubin", "c.cubin"])
    assert found.startswith("did you mean 'area(float)', defined in /")
    assert found.endswith("c.cu:3?")


def test_a_function_without_mangling(tmp_path: Path) -> None:
    compile(
        tmp_path,
        a='extern "C" __device__ int f(int); __global__ void k(int *p) { *p = f(*p); }',
        b="__device__ int f(int x) { return x; }\n"
        "namespace n { __device__ int f(int x) { return x; } }",
    )
    assert notes(tmp_path, ["-arch=sm_90", "a.cubin", "b.cubin"]) == [
        "did you mean 'f(int)', defined in b.cubin?"
    ]


def test_two_sizes_of_a_variable(tmp_path: Path) -> None:
    compile(
        tmp_path,
        a="__device__ int table[4]; __global__ void k(int *p) { *p = table[*p]; }",
        b="extern __device__ int table[6]; __global__ void l(int *p) { *p = table[*p]; }",
    )
    assert notes(tmp_path, ["-arch=sm_90", "a.cubin", "b.cubin"]) == [
        "it has 24 bytes in 'b.cubin' and 16 bytes in 'a.cubin'"
    ]


DEEP = (
    "__device__ float deep(float *p) { float v[60]; for (int i = 0; i < 60; ++i) v[i] = p[i * 7]; "
    "float s = 0; for (int i = 0; i < 60; ++i) for (int j = 0; j < 60; ++j) s += v[i] * v[j] + i; "
    "for (int i = 0; i < 60; ++i) p[i] = v[i] * s; return s; }"
)


@pytest.mark.parametrize("arch", ["75", "90", "100"])
@pytest.mark.parametrize(
    ("bounds", "flags", "limit", "cause"),
    [
        ("__launch_bounds__(1024, 1)", [], 64, "its __launch_bounds__ of 1024 threads"),
        ("__launch_bounds__(1024)", ["-maxrregcount=40"], 64, "its __launch_bounds__ of 1024 "),
        ("", ["-maxrregcount=40"], 40, "the -maxrregcount of 'a.cubin'"),
        ("__maxnreg__(40)", [], 40, "its __maxnreg__"),
        ("__maxnreg__(40)", ["-maxrregcount=32"], 40, "its __maxnreg__"),
    ],
)
def test_a_function_with_too_many_registers(
    tmp_path: Path, arch: str, bounds: str, flags: list[str], limit: int, cause: str
) -> None:
    kernel = (
        f"__device__ float mid(float *p);\n__global__ void {bounds} k(float *p) {{ *p = mid(p); }}"
    )
    cubin = oracle.compile(kernel, arch, flags, name="a.cu")
    (tmp_path / "a.cubin").write_bytes(cubin)
    between = (
        "__device__ float deep(float *p); __device__ float mid(float *p) { return deep(p) + 1; }"
    )
    compile(tmp_path, arch, b=between, c=DEEP)
    (found,) = notes(tmp_path, [f"-arch=sm_{arch}", "a.cubin", "b.cubin", "c.cubin"])
    start = "call chain: k(float *) -> mid(float *) -> deep(float *); "
    assert found.startswith(f"{start}{cause}")
    assert found.endswith(f" limits the kernel to {limit} registers")


def test_a_limit_of_registers_in_an_object_of_a_link(tmp_path: Path) -> None:
    """The note of ptxas is gone then, and with it the option."""
    kernel = "__device__ float deep(float *p); __global__ void k(float *p) { *p = deep(p); }"
    cubin = oracle.compile(kernel, "90", ["-maxrregcount=40"], name="a.cu")
    (tmp_path / "a.cubin").write_bytes(cubin)
    compile(tmp_path, c=DEEP)
    oracle.run_nvlink(["-arch=sm_90", "-r", "a.cubin", "-o", "r.cubin"], tmp_path)
    (found,) = notes(tmp_path, ["-arch=sm_90", "r.cubin", "c.cubin"])
    assert found.endswith(
        "__maxnreg__ or the -maxrregcount of 'r.cubin' limits the kernel to 40 registers"
    )


@pytest.mark.parametrize("options", [[], ["-r"], ["-Werror"], ["-w"]])
def test_a_lowered_virtual_architecture(tmp_path: Path, options: list[str]) -> None:
    for name, virtual in (("recent", "90"), ("old", "80"), ("older", "80")):
        ptx = oracle.compile_ptx(f"__global__ void {name}() {{}}", virtual, name=f"{name}.cu")
        (tmp_path / f"{name}.cubin").write_bytes(oracle.assemble(ptx, "90"))
    words = ["-arch=sm_90", *options]
    alone = [*words, "old.cubin", "older.cubin"]
    said = (
        "The output reports compute_80 for all kernels, as 'old.cubin'{} does; 'recent.cubin' was "
        "compiled for compute_90"
    )
    for others, more in (([], ""), (["older.cubin"], " and 1 more")):
        mixed = [*words, "recent.cubin", "old.cubin", *others]
        assert pylink(tmp_path, mixed) == nvlink(tmp_path, mixed)
        assert not compare((tmp_path / OURS).read_bytes(), (tmp_path / THEIRS).read_bytes())
        ours = pylink(tmp_path, mixed, name="pylink")
        quiet = "-w" in options
        assert ours.code == 0
        assert ours.lines == ([] if quiet else [f"note    : {said.format(more)}"])
        text = own_messages(tmp_path, mixed)
        assert (said.format(more) in text) is not quiet
        assert "error" not in text
        assert pylink(tmp_path, [*mixed, "--diag-error=217"], name="pylink").code == 255
        assert pylink(tmp_path, [*mixed, "--diag-suppress=217"], name="pylink").lines == []
    assert pylink(tmp_path, alone, name="pylink").lines == []


@pytest.mark.parametrize(
    ("declaration", "call", "said"),
    [
        (
            'extern "C" __device__ int cudaDeviceGetLimit(size_t *, int);',
            "cudaDeviceGetLimit(0, n)",
            "'cudaDeviceGetLimit' is in the device runtime (libcudadevrt.a); use -lcudadevrt "
            "in this link and in the host link",
        ),
        (
            'extern "C" __device__ int nvshmem_my_pe();',
            "nvshmem_my_pe()",
            "'nvshmem_my_pe' is in NVSHMEM (libnvshmem_device.a); use -lnvshmem_device "
            "in this link and in the host link",
        ),
        (
            'extern "C" __device__ int __nv_my_own(int);',
            "__nv_my_own(n)",
            "'__nv_my_own' is in libdevice, which the compiler links and a device linker does not; "
            "link libdevice.10.bc where the code is compiled",
        ),
    ],
)
def test_an_undefined_name_of_a_known_library(
    tmp_path: Path, declaration: str, call: str, said: str
) -> None:
    text = f"{declaration} __global__ void k(int *p, int n) {{ *p = {call}; }}"
    compile(tmp_path, a=text)
    assert said in notes(tmp_path, ["-arch=sm_90", "a.cubin"])


@pytest.mark.parametrize(
    ("arch", "said"),
    [
        ("sm_70", "sm_70 was last supported by CUDA 12.9"),
        ("sm_35", "sm_35 was last supported by CUDA 11.8"),
        ("sm_101a", "sm_101a is called sm_110a since CUDA 13.0"),
    ],
)
def test_an_architecture_that_is_no_longer_there(tmp_path: Path, arch: str, said: str) -> None:
    compile(tmp_path, a="__global__ void k() {}")
    found = notes(tmp_path, [f"-arch={arch}", "a.cubin"])
    assert said in found
    assert not any("did you mean" in line for line in found)
