"""Programs that link device code of shared libraries: images against static links, and runs.

Device images are compared byte for byte with those of the same objects linked statically; programs
run with a runtime that says which image each launch finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from helpers import oracle, registered_programs
from helpers.compare import compare
from helpers.host_build import ARCH, LINKERS, Failed, HostBuild
from helpers.linked import functions
from helpers.side_by_side import OURS, THEIRS, nvlink, pylink

pytestmark = oracle.needs_oracle

API = """\
#pragma once
template <class T> __device__ __noinline__ T twice(T x) { return x * T(2) + T(1); }
inline __device__ int inline_var = 3;
__device__ int b_fun(int);
__device__ int c_fun(int);
extern __device__ int b_var;
void b_host(int *);
void c_host(int *);
void d_host(int *);
void plain_host(int *);
extern "C" int text_value(void);
"""
B = """\
#include "api.cuh"
__device__ int b_var = 5;
static __device__ int own = 1;
__device__ int b_fun(int x) { return c_fun(x) * 3 + b_var + own + twice(x); }
__global__ void b_kernel(int *p) { *p = b_fun(*p) + inline_var; }
void b_host(int *p)
{
    int value = 7;
    cudaMemcpyToSymbol(b_var, &value, sizeof value);
    b_kernel<<<1, 1>>>(p);
}
"""
C = """\
#include "api.cuh"
__managed__ int c_managed = 2;
static __device__ int own = 2;
__device__ int c_fun(int x) { return x + own + c_managed + twice(x); }
__global__ void c_kernel(int *p) { *p = c_fun(*p) + inline_var; }
__global__ void c_unused(int *p) { *p = 1; }
void c_host(int *p) { c_kernel<<<1, 1>>>(p); }
"""
D = """\
#include "api.cuh"
__global__ void d_kernel(int *p) { *p = twice(*p) + text(); }
"""
D = D.replace(" + text()", "") + "void d_host(int *p) { d_kernel<<<1, 1>>>(p); }\n"
PLAIN = """\
__global__ void plain_kernel(int *p) { *p = 9; }
void plain_host(int *p) { plain_kernel<<<1, 1>>>(p); }
"""
TEXT = "int text_value(void) { return 42; }\n"
MAIN = """\
#include <cstdio>
#include "api.cuh"
__global__ void main_kernel(int *p) { *p = b_fun(*p) + twice(*p); }
__global__ void main_unused(int *p) { *p = 3; }
int main()
{
    main_kernel<<<1, 1>>>(nullptr);
    b_host(nullptr);
    c_host(nullptr);
    std::puts("end of main");
}
"""
ALL_MAIN = MAIN.replace(
    "    std::puts", "    d_host(nullptr);\n    plain_host(nullptr);\n    std::puts"
)
HOST_MAIN = """\
#include <cstdio>
#include "api.cuh"
__global__ void main_kernel(int *p) { *p = twice(*p); }
int main()
{
    main_kernel<<<1, 1>>>(nullptr);
    c_host(nullptr);
    std::puts("end of main");
}
"""

FIVE = ["b.o", "c.o", "d.o", "plain.o", "text.o"]
LAUNCHED = ["_Z11main_kernelPi", "b_var", "_Z8b_kernelPi", "_Z8c_kernelPi"]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> HostBuild:
    """The objects that all tests share."""
    made = HostBuild(tmp_path_factory.mktemp("shared"))
    made.write(api_cuh=API, b_cu=B, c_cu=C, d_cu=D, plain_cu=PLAIN, text_c=TEXT, main_cu=MAIN)
    made.write(all_cu=ALL_MAIN, host_cu=HOST_MAIN)
    for name in ("b.cu", "main.cu", "all.cu", "host.cu"):
        made.compile(name, "-rdc=true")
    made.compile("c.cu", "-rdc=true", "--compress-mode=size")
    made.compile("d.cu", "-rdc=true", "-gencode=arch=compute_80,code=sm_80")
    made.compile("plain.cu")
    made.run("gcc", "-fPIC", "-c", "text.c", "-o", "text.o")
    return made


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> HostBuild:
    """What random programs share."""
    made = HostBuild(tmp_path_factory.mktemp("programs"))
    registered_programs.prepare(made)
    return made


def image(build: HostBuild, inputs: Sequence[str], *options: str) -> bytes:
    """The cubin that pylink makes of these, which it must."""
    said = pylink(build.folder, [f"-arch={ARCH}", *options, *inputs])
    assert said.code == 0, said.lines
    assert not said.lines
    return (build.folder / OURS).read_bytes()


def same_as_nvlink(build: HostBuild, inputs: Sequence[str]) -> None:
    """Image, messages and list of registrations equal nvlink's."""
    words = [f"-arch={ARCH}", *inputs]
    theirs = nvlink(build.folder, [*words, "--register-link-binaries=theirs.reg"])
    assert pylink(build.folder, [*words, "--register-link-binaries=ours.reg"]) == theirs
    folder = build.folder
    assert (folder / "ours.reg").read_bytes() == (folder / "theirs.reg").read_bytes()
    if theirs.code == 0:
        assert compare((folder / OURS).read_bytes(), (folder / THEIRS).read_bytes()) == []


HOST_LINKS = {
    "plain": [],
    "stripped": ["-s"],
    "now": ["-Wl,-z,now"],
    "symbolic": ["-Wl,-Bsymbolic"],
    "packed": ["-Wl,-z,pack-relative-relocs"],
    "hidden": ["-Wl,--version-script=local.map"],
}


# gold packs no relocations.
COMBINATIONS = [
    (linker, kind)
    for linker in LINKERS
    for kind in HOST_LINKS
    if (linker, kind) != ("gold", "packed")
]


@pytest.mark.parametrize(("linker", "kind"), COMBINATIONS)
def test_the_image_is_that_of_the_static_link(build: HostBuild, linker: str, kind: str) -> None:
    (build.folder / "local.map").write_text("{ global: *_host*; text_value; local: *; };")
    library = build.library("libfive.so", FIVE, *HOST_LINKS[kind], linker=linker)
    static = image(build, ["all.o", "b.o", "c.o", "d.o"])
    assert image(build, ["all.o", library]) == static
    assert "_Z11main_unusedPi" not in functions(static)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("hidden", [False, True])
def test_kernels_stay_where_the_host_linker_cut_lists(
    build: HostBuild, linker: str, hidden: bool
) -> None:
    objects = list(FIVE)
    if hidden:
        for name in "bcd":
            objects[objects.index(f"{name}.o")] = build.compile(
                f"{name}.cu", "-rdc=true", "-Xcompiler", "-fvisibility=hidden", target=f"h{name}.o"
            )
    library = build.library("libcut.so", objects, "-Wl,--gc-sections", linker=linker)
    linked = functions(image(build, ["all.o", library]))
    assert linked >= {"_Z8b_kernelPi", "_Z8c_kernelPi", "_Z8d_kernelPi", "_Z11main_kernelPi"}


@pytest.mark.parametrize("order", [["b", "c"], ["c", "b"]])
def test_libraries_that_call_each_other(build: HostBuild, order: list[str]) -> None:
    libraries = [build.library(f"libm{name}.so", [f"{name}.o"]) for name in order]
    static = [f"{name}.o" for name in order]
    expected = image(build, ["main.o", *static])
    assert compare(image(build, ["main.o", *libraries]), expected) == []
    by_name = [f"-lm{name}" for name in order]
    assert compare(image(build, ["main.o", "-L.", *by_name]), expected) == []
    expected = image(build, [*static, "main.o"])
    assert compare(image(build, [*libraries, "main.o"]), expected) == []


def test_one_library_made_of_objects_linked_before(build: HostBuild) -> None:
    build.run("ld", "-r", "b.o", "c.o", "-o", "bc.o")
    library = build.library("libbcr.so", ["bc.o"])
    assert image(build, ["main.o", library]) == image(build, ["main.o", "b.o", "c.o"])


def test_optimized_at_link_time(build: HostBuild) -> None:
    for name in ("main", "b", "c"):
        flags = ("-rdc=true", "-gencode=arch=compute_90,code=lto_90")
        build.run(
            oracle.toolchain().tool("nvcc"), *flags, "-Xcompiler", "-fPIC", "-c", f"{name}.cu",
            "-o", f"lto_{name}.o",
        )  # fmt: skip
    library = build.library("libltobc.so", ["lto_b.o", "lto_c.o"])
    options = ["-lto", f"-nvvmpath={oracle.toolchain().bin.parent / 'nvvm'}"]
    shared = image(build, ["lto_main.o", library], *options)
    assert shared == image(build, ["lto_main.o", "lto_b.o", "lto_c.o"], *options)


@pytest.mark.parametrize(
    ("libraries", "flags"),
    [
        (["b", "c"], []),
        (["bc"], []),
        (["bc"], ["-Xcompiler", "-no-pie", "-Xlinker", "-no-pie"]),
        (["bc"], ["-Xlinker", "--as-needed"]),
        (["c", "b"], ["-Xlinker", "-z,now"]),
    ],
    ids=str,
)
def test_programs_run(build: HostBuild, libraries: list[str], flags: list[str]) -> None:
    """Each launch finds the one image, and a host variable is the one of its library."""
    inputs = ["main.o"]
    for name in libraries:
        inputs.append(build.library(f"libm{name}.so", [f"{letter}.o" for letter in name]))
    program = build.program("prog", inputs, *flags)
    log = build.start(program)
    assert log.ended
    assert log.used == [(name, "image 1") for name in LAUNCHED]
    assert log.images == 1
    assert log.hosts["b_var"] == ("libmbc.so" if "bc" in libraries else "libmb.so")
    registered_once(build, [program, *inputs[1:]], modules=3)


def registered_once(build: HostBuild, files: Sequence[str], *, modules: int) -> None:
    """One file defines the registration of each module, and code needs no relocation."""
    defined: list[str] = []
    wanted: set[str] = set()
    for file in files:
        for line in build.run("nm", "-D", file).splitlines():
            *_, kind, name = line.split()
            if name.startswith("__cudaRegisterLinkedBinary"):
                if kind == "U":
                    wanted.add(name)
                else:
                    defined.append(name)
        assert "TEXTREL" not in build.run("readelf", "-d", file)
    assert len(defined) == len(set(defined))
    assert wanted <= set(defined)
    assert len(wanted) == modules - 1  # the program's own is not a matter of other files


def test_programs_with_a_file_that_is_not_relocatable(build: HostBuild) -> None:
    library = build.library("libfive.so", FIVE)
    log = build.start(build.program("prog5", ["all.o", library]))
    assert log.ended
    assert not log.lost_names
    assert [name for name, _ in log.used][-2:] == ["_Z8d_kernelPi", "_Z12plain_kernelPi"]
    assert log.images == 2


@pytest.mark.parametrize("way", ["visibility", "version script"])
def test_wrappers_that_no_other_file_sees(build: HostBuild, way: str) -> None:
    """The library hands its wrapper over, and stays though the host names nothing of it."""
    if way == "visibility":
        flags = ("-rdc=true", "-Xcompiler", "-fvisibility=hidden")
        text = B.replace("void b_host", '__attribute__((visibility("default"))) void b_host')
        build.write(hb_cu=text)
        objects = [build.compile("hb.cu", *flags), "c.o"]
        library = build.library("libh.so", objects)
    else:
        (build.folder / "host.map").write_text("{ global: *_host*; local: *; };")
        library = build.library("libh.so", ["b.o", "c.o"], "-Wl,--version-script=host.map")
    program = build.program("progh", ["main.o", library], "-Xlinker", "--as-needed")
    log = build.start(program)
    assert log.ended
    assert log.used == [(name, "image 1") for name in LAUNCHED]


def test_a_library_against_others(build: HostBuild) -> None:
    """One library links two open ones, and owns them; a program uses all through its host code."""
    for name in "bc":
        build.library(f"libm{name}.so", [f"{name}.o"])
    build.write(x_cu=MAIN.replace("int main()", "void x_host()").replace("std::puts", "(void)"))
    owner = build.closed("libx.so", [build.compile("x.cu", "-rdc=true"), "libmb.so", "libmc.so"])
    build.write(
        px_cu="#include <cstdio>\nvoid x_host();\n__global__ void px_kernel() {}\n"
        'int main() { px_kernel<<<1, 1>>>(); x_host(); std::puts("end of main"); }\n'
    )
    inputs = [build.compile("px.cu", "-rdc=true"), owner, "libmb.so", "libmc.so"]
    log = build.start(build.program("progx", inputs))
    assert log.ended
    assert not log.lost_names
    assert log.images == 2
    said = pylink(build.folder, [f"-arch={ARCH}", "main.o", *inputs[1:]], name="pylink")
    assert said.code == 255
    assert any("'libx.so' was device-linked with it" in line for line in said.lines)


def test_a_library_that_only_holds_a_link_owns_its_modules(build: HostBuild) -> None:
    """As nvlink does, the program leaves libb.so and libc.so to it, with one image for both."""
    for name in "bc":
        build.library(f"libm{name}.so", [f"{name}.o"])
    flags = ("-shared", "-dlink", "-Xcompiler", "-fPIC")
    build.run(build.nvcc, f"-arch={ARCH}", *flags, "b.o", "c.o", "-o", "final.o")
    needed = ("-Wl,--no-as-needed", "-L.", "-lmb", "-lmc")
    build.run("g++", "-shared", "final.o", *needed, "-o", "libfinal.so")
    # The program names one of the two alone: taking that one would break the image of both.
    build.write(fm_cu=HOST_MAIN.replace("{ *p = twice(*p); }", "{ *p = 1; }"))
    inputs = [build.compile("fm.cu", "-rdc=true"), "libfinal.so", "libmc.so"]
    same_as_nvlink(build, inputs)
    log = build.start(build.program("progf", inputs))
    assert log.ended
    assert [name for name, _ in log.used] == ["_Z11main_kernelPi", "_Z8c_kernelPi"]
    assert not log.lost_names
    assert log.images == 2


@pytest.mark.parametrize("seed", [*range(24), 77228])
def test_no_registration_is_lost_without_a_word(programs: HostBuild, seed: int) -> None:
    """Random programs and plugins, which share modules between objects, archives and libraries."""
    program = registered_programs.draw(seed)
    said, log = registered_programs.run(programs, program)
    if log is not None and log.lost_names:
        assert "warning : " in said, program
    elif "warning : " in said:
        # What may go wrong: the loader's order, or a library that the host linker has left out.
        # And kernels are lost that nobody uses where another library has the same modules.
        copies = Counter("".join(modules for _, modules in program.libraries))
        said_why = "contain the same module" in said or "is loaded first" in said
        assert said_why or max(copies.values()) > 1, program


def test_a_closed_library_is_none_of_the_link(build: HostBuild) -> None:
    library = build.closed("libclosed.so", ["b.o", "c.o"])
    same_as_nvlink(build, ["host.o", library])
    log = build.start(build.program("progc", ["host.o", library]))
    assert log.ended
    assert not log.lost_names
    assert log.images == 2


@pytest.mark.parametrize("twin", ["libstatic.a", "-L. -lstatic"])
@pytest.mark.parametrize("first", [False, True])
def test_a_static_twin_is_linked_as_by_nvlink(build: HostBuild, twin: str, first: bool) -> None:
    build.run("ar", "rcs", "libstatic.a", "b.o", "c.o")
    library = build.library("libtwin.so", ["b.o", "c.o"])
    inputs = ["main.o", library, *twin.split()] if first else ["main.o", *twin.split(), library]
    same_as_nvlink(build, inputs)
    log = build.start(build.program("progt", inputs))
    assert log.ended
    assert log.used == [(name, "image 1") for name in LAUNCHED]


def test_objects_beside_their_library_are_warned_of(build: HostBuild) -> None:
    """Both parts of the host program register, and the image is complete too early."""
    library = build.library("libtwin.so", ["b.o", "c.o"])
    inputs = ["main.o", library, "b.o", "c.o"]
    said = pylink(build.folder, [f"-arch={ARCH}", *inputs])
    assert said.lines == [
        "warning : 'libtwin.so' and 'b.o' contain the same module; link only one of them",
    ]
    assert build.start(build.program("progo", inputs)).lost_names


@pytest.mark.parametrize(
    "inputs",
    ["host.o main", "host.o /lib/x86_64-linux-gnu/libm.so.6", "host.o script.so", "host.o -lm"],
)
def test_what_is_no_library_with_device_code(build: HostBuild, inputs: str) -> None:
    build.library("libmc.so", ["c.o"])
    (build.folder / "script.so").write_text(
        "GROUP ( /lib/libc.so.6 AS_NEEDED ( /lib/ld.so.2 ) )\n" * 2
    )
    if "main" in inputs:
        build.program("main", ["host.o", "libmc.so"])
    same_as_nvlink(build, inputs.split())


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_library_with_a_runtime_of_its_own(build: HostBuild, level: str) -> None:
    """Optimized code calls fewer functions of the runtime."""
    objects = [
        build.compile(f"{letter}.cu", "-rdc=true", level, target=f"{letter}x.o") for letter in "bc"
    ]
    runtime = ["-lcudart_static", "-ldl", "-lrt", "-lpthread"]
    build.run("g++", "-shared", *objects, f"-L{build.root}/lib64", *runtime, "-o", "libown.so")
    said = pylink(build.folder, [f"-arch={ARCH}", "main.o", "libown.so"])
    assert said.code == 0
    assert said.lines[0].startswith("warning : 'libown.so' contains its own CUDA runtime")
    assert image(build, ["main.o", build.library("libnone.so", objects)])


def test_an_optimized_library_of_device_functions(build: HostBuild) -> None:
    """Its host code calls nothing of a runtime."""
    build.write(f_cu="__device__ int b_fun(int x) { return x; }\n")
    made = build.library("libfun.so", [build.compile("f.cu", "-rdc=true", "-O2")])
    build.write(
        g_cu="extern __device__ int b_fun(int); __global__ void g(int *p) { *p = b_fun(1); }"
    )
    assert image(build, [build.compile("g.cu", "-rdc=true"), made])


def test_another_release_of_a_library(build: HostBuild) -> None:
    """A program is bound to the modules that its library had: documented, and never silent."""
    build.library("libskew.so", ["b.o", "c.o"])
    program = build.program("skew", ["main.o", "libskew.so"])
    build.write(b2_cu=B)
    build.library("libskew.so", [build.compile("b2.cu", "-rdc=true"), "c.o"])
    with pytest.raises(Failed, match=r"undefined symbol|symbol lookup error"):
        build.start(program)


def test_a_plugin_cannot_be_opened(build: HostBuild) -> None:
    build.library("libplugin.so", ["d.o"])
    build.write(
        load_cc="#include <dlfcn.h>\n#include <cstdio>\nint main() {\n"
        'if (!dlopen("./libplugin.so", RTLD_NOW)) std::puts(dlerror()); }\n'
    )
    build.run("g++", "load.cc", "-o", "load", "-Lruntime", "-Wl,--no-as-needed", "-lcudart", "-ldl")
    assert "undefined symbol: __cudaRegisterLinkedBinary_" in build.run("./load")
