"""Names that are undefined although files at hand define them, through the nvcc of an overlay."""

from __future__ import annotations

import sys
from pathlib import Path

from helpers import oracle
from helpers.through_nvcc import both, build, output_of

pytestmark = oracle.needs_oracle

USER = "__device__ int f(int); __global__ void k(int *p) { *p = f(*p); }"
DEFINES = "__device__ int f(int x) { return x + 1; }"
UNDEFINED = "nvlink error   : Undefined reference to '_Z1fi' in 'a.o'"


def archive(folder: Path, name: str, *members: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    oracle.run(["ar", "crD", name, *members], folder)


def by_name(folder: Path, *words: str) -> str:
    """What pylink prints under its own name, in text."""
    link = [sys.executable, "-m", "pylink", "-arch=sm_90", *words, "-o", "made"]
    done = output_of(folder, [*link, "--diagnostics_format=text"])
    assert done.code
    return " ".join("\n".join(done.lines).split())


def test_a_member_with_code_for_another_architecture(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=USER)
    build(tmp_path, "-code=sm_80", arch="compute_80", b=DEFINES, c="__device__ int unused;")
    archive(tmp_path, "libb.a", "c.o", "b.o")
    note = (
        "'_Z1fi' is defined in '{}', which has code for sm_80 and none for sm_90; compile it for "
        "sm_90, too"
    )
    for words, name in (
        (["libb.a"], "libb.a:b.o"),
        (["-L.", "-lb"], "./libb.a:b.o"),
        (["b.o"], "b.o"),
    ):
        said = both(tmp_path, overlay, "-dlink", "a.o", *words)
        assert UNDEFINED in said.lines
        assert said.notes[-1] == note.format(name)
    assert note.format("libb.a:b.o") in by_name(tmp_path, "a.o", "libb.a")


def test_an_entry_for_another_architecture(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=USER)
    some = "-gencode=arch=compute_80,code=sm_80"
    conditional = f"#if __CUDA_ARCH__ < 900\n{DEFINES}\n#endif\n__device__ int g;"
    build(tmp_path, some, b=conditional)
    said = both(tmp_path, overlay, "-dlink", "a.o", "b.o")
    assert said.lines == [UNDEFINED]
    assert said.notes[-1] == (
        "'_Z1fi' is defined in the code for sm_80 of 'b.o', but not in the code for sm_90, "
        "which is linked; look for __CUDA_ARCH__ in its source"
    )


def test_another_library_of_the_name(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=USER, b=DEFINES, c="__device__ int old;")
    archive(tmp_path, "first/libb.a", "c.o")
    archive(tmp_path, "second/libb.a", "b.o")
    said = both(tmp_path, overlay, "-dlink", "a.o", "-Lfirst", "-Lsecond", "-lb")
    assert said.lines == [UNDEFINED]
    note = (
        "'_Z1fi' is defined in '{}', but -lb finds '{}'; name the file itself, or change the order "
        "of -L"
    )
    assert said.notes[-1] == note.format("second/libb.a:b.o", "first/libb.a")
    assert both(tmp_path, overlay, "-dlink", "a.o", "-Lsecond", "-Lfirst", "-lb").code == 0
    # A shared library hides an archive, wherever it is.
    (tmp_path / "empty.c").write_text("")
    oracle.run(["cc", "-shared", "empty.c", "-o", "first/libd.so"], tmp_path)
    archive(tmp_path, "first/libd.a", "b.o")
    said = both(tmp_path, overlay, "-dlink", "a.o", "-Lfirst", "-ld")
    assert said.notes[-1] == (
        note.format("first/libd.a:b.o", "first/libd.so").replace("-lb", "-ld")
    )


def test_removed_kernels_are_no_news_of_a_link_that_failed(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=USER + "__global__ void lost() {} int main() { k<<<1, 1>>>(nullptr); }")
    said = both(tmp_path, overlay, "-dlink", "-cubin", "a.o")
    assert said.lines == [UNDEFINED]
    assert not any(note.startswith("Kernels removed") for note in said.notes)


def test_ptx_in_an_archive(tmp_path: Path) -> None:
    """Through nvcc nobody comes to this."""
    build(tmp_path, a=USER)
    (tmp_path / "b.cu").write_text(DEFINES)
    nvcc = oracle.toolchain().tool("nvcc")
    oracle.run([nvcc, "-arch=compute_90", "-ptx", "-rdc=true", "b.cu"], tmp_path)
    archive(tmp_path, "libb.a", "b.ptx")
    assert (
        "'_Z1fi' is defined in 'libb.a:b.ptx', but PTX in archives is linked only with "
        "--whole-archive"
    ) in by_name(tmp_path, "a.o", "libb.a")
