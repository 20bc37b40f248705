"""Archives that hold the result of a device link (`_dlink.o`) beside the objects it was made of.

Build systems that link each library for the device put both into one archive.
"""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.host_build import ARCH, HostBuild
from helpers.side_by_side import OURS, THEIRS, nvlink, pylink

pytestmark = oracle.needs_oracle

API = "__device__ int b_fun(int);\nvoid b_host(int *);\n"
B = """\
#include "api.cuh"
__device__ int b_fun(int x) { return x * 3; }
__global__ void b_kernel(int *p) { *p = b_fun(*p); }
void b_host(int *p) { b_kernel<<<1, 1>>>(p); }
"""
MAIN = """\
#include <cstdio>
#include "api.cuh"
__global__ void main_kernel(int *p) { *p = b_fun(*p); }
int main()
{
    main_kernel<<<1, 1>>>(nullptr);
    b_host(nullptr);
    std::puts("end of main");
}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> HostBuild:
    made = HostBuild(tmp_path_factory.mktemp("archives"))
    made.write(api_cuh=API, b_cu=B, main_cu=MAIN)
    for name in ("b.cu", "main.cu"):
        made.compile(name, "-rdc=true")
    flags = (f"-arch={ARCH}", "-rdc=true", "-Xcompiler", "-fPIC", f"-L{made.root}/lib64")
    made.run(oracle.toolchain().tool("nvcc"), *flags, "-dlink", "b.o", "-o", "b_dlink.o")
    return made


@pytest.mark.parametrize("members", [["b.o", "b_dlink.o"], ["b_dlink.o", "b.o"]])
def test_the_objects_are_linked_and_registered_once(build: HostBuild, members: list[str]) -> None:
    (build.folder / "libb.a").unlink(missing_ok=True)
    build.run("ar", "rcs", "libb.a", *members)
    words = [f"-arch={ARCH}", "main.o", "libb.a"]
    assert pylink(build.folder, words).code == 0
    assert nvlink(build.folder, [f"-arch={ARCH}", "main.o", "b.o"]).code == 0
    assert compare((build.folder / OURS).read_bytes(), (build.folder / THEIRS).read_bytes()) == []
    log = build.start(build.program("prog", ["main.o", "libb.a"]))
    assert log.ended
    assert log.used == [("_Z11main_kernelPi", "image 1"), ("_Z8b_kernelPi", "image 1")]
    assert log.images == 1


def test_a_device_link_alone_is_told_of(build: HostBuild) -> None:
    said = pylink(build.folder, [f"-arch={ARCH}", "main.o", "b_dlink.o"], name="pylink")
    assert said.code == 255
    assert said.lines[1:] == [
        "note    : 'b_dlink.o' is the output of a device link; link its objects instead"
    ]
