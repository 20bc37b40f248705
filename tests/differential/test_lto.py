"""Link-time optimization gives nvlink's PTX and programs, byte for byte where all is LTO-IR."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest
from helpers import oracle
from helpers.archive_builder import gnu, write
from helpers.compare import compare
from helpers.linked import functions, kernels
from helpers.lto_sources import (
    SOURCES,
    USER,
    write_fatbin,
    write_host_object,
    write_ltoir,
    write_nvvm,
)
from helpers.toolkit import Toolkit, run

import pylink
from pylink.command.cli import main
from pylink.profile import timetrace
from pylink.report import read_report
from pylink.subtools import worker

pytestmark = oracle.needs_oracle
pytest.importorskip("cuda.bindings", reason="needs nvJitLink: pip install '.[cuda]'")

LTO = ("-lto", "-nvvmpath=nvvm")

MAIN = """
extern __device__ int wanted(int x);
__global__ void k8(int *p) { *p = wanted(*p); }
int main()
{
    k8<<<1, 1>>>(nullptr);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""

OPTIONS = """
-dlto
-Ofc=0
-Ofc=min
-Ofc=mid
-Ofc=max
-Xnvvm=-opt=0
-Xnvvm=-fma=0,-opt=3
-Xnvvm='-fma=0 -opt=3'
-Xptxas=-O1
-maxrregcount=32
-device-stack-protector=true
-split-compile=1
-split-compile=2
-split-compile-extended=2
-force-whole-lto
-g
-g -suppress-debug-info
-g -kernels-used=k1 -maxrregcount=32
-use-host-info
-ignore-host-info
-kernels-used=k3
-variables-used=used_var
-kernels-used=k1,k3 -variables-used=gvar
-v
"""

# With these, nvlink puts the variables of a program in another order each time.
UNSTABLE = ("-Ofc=max", "-Xnvvm=-opt=0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LTO-IR of all sources, and the directory for -nvvmpath."""
    made = tmp_path_factory.mktemp("lto")
    write_ltoir(made, *SOURCES)
    write_nvvm(made)
    return made


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("ours", "theirs", "t1", "t2"):
        Path(name).unlink(missing_ok=True)


def link(arch: str, *words: str) -> oracle.NvlinkResult:
    """Link with both; nvlink's result. The tables of -time are compared."""
    argv = [f"-arch=sm_{arch}", *LTO, *words]
    expected = oracle.run_nvlink([*argv, "-o", "theirs", "-time=t1"], Path.cwd(), "theirs")
    assert main([*argv, "-o", "ours", "-time=t2"]) == expected.code
    rows, wanted = (
        re.sub(r"\d+\.\d{4} , ms", "TIME", Path(table).read_text()) for table in ("t2", "t1")
    )
    assert rows == wanted
    return expected


@pytest.mark.parametrize("arch", ["80", "89", "90", "90a", "100", "103", "120a"])
def test_whole_programs(arch: str) -> None:
    for names in (["caller", "called"], ["library"], ["user", "library", "alone"]):
        expected = link(arch, *(f"{name}.ltoir" for name in names))
        assert Path("ours").read_bytes() == expected.image


@pytest.mark.parametrize("registers", ["24", "64"])
def test_registers_count_before_ptxas(registers: str) -> None:
    link("90", "-emit-ptx", "angles.ltoir")
    free = Path("ours").read_bytes()
    option = f"-maxrregcount={registers}"
    expected = link("90", option, "-emit-ptx", "angles.ltoir")
    assert Path("ours").read_bytes() == expected.image != free
    expected = link("90", option, "angles.ltoir")
    assert Path("ours").read_bytes() == expected.image


@pytest.mark.parametrize("line", OPTIONS.strip().splitlines())
def test_options(line: str) -> None:
    inputs = ("caller.ltoir", "called.ltoir", "library.ltoir")
    expected = link("90", *shlex.split(line), *inputs)
    if line not in UNSTABLE:
        assert Path("ours").read_bytes() == expected.image
    Path("ours").unlink()
    expected = link("90", *shlex.split(line), "-emit-ptx", *inputs)
    ours = Path("ours").read_bytes()
    assert expected.image is not None
    if line in UNSTABLE:
        assert sorted(ours.splitlines()) == sorted(expected.image.splitlines())
    else:
        assert ours == expected.image


def test_a_forced_part_is_linked() -> None:
    """nvlink leaves the code of files out, as it does beside cubins."""
    argv = ["-arch=sm_90", *LTO, "-force-partial-lto", "caller.ltoir", "called.ltoir"]
    expected = oracle.run_nvlink([*argv, "-o", "theirs"], Path.cwd(), "theirs")
    assert main([*argv, "-o", "ours"]) == expected.code == 0
    assert expected.image is not None
    assert kernels(expected.image) == set()
    assert kernels(Path("ours").read_bytes()) == {"_Z2k1Pi", "_Z2k2Pf"}


@pytest.mark.parametrize("arch", ["80", "90", "100"])
def test_from_python(arch: str) -> None:
    """Nobody names libraries; inputs are files or bytes."""
    expected = link(arch, "caller.ltoir", "called.ltoir")
    files: list[Path | tuple[str, bytes]] = [
        Path("caller.ltoir"),
        ("called.ltoir", Path("called.ltoir").read_bytes()),
    ]
    result = pylink.link(files, arch=f"sm_{arch}", lto=True)
    assert result.image == expected.image
    with pylink.Linker(arch=f"sm_{arch}", lto=True) as linker:
        for file in files:
            linker.add(file)
        assert linker.complete().image == expected.image
    with pytest.raises(pylink.LinkError, match="nvvm files when -lto"):
        pylink.link(files, arch=f"sm_{arch}")


@pytest.mark.parametrize("mixed", [False, True])
def test_a_packed_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mixed: bool) -> None:
    """Compilers stay where they are; the archive has LTO-IR and options, and is linked anywhere."""
    inputs = ["user.ltoir", "library.ltoir"]
    if mixed:
        Path("user.cubin").write_bytes(oracle.compile(USER, "90"))
        inputs[0] = "user.cubin"
    archive = str(tmp_path / "r.tar.zst")
    words = ["-arch=sm_90", *LTO, "-maxrregcount=64", *inputs, "--reproduce", archive]
    assert main([*words, "-o", "ours"]) == 0
    made = Path("ours").read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["reproduce", archive, "-o", "again"]) == 0
    assert Path("again").read_bytes() == made


@pytest.mark.parametrize("option", UNSTABLE)
def test_the_same_bytes_every_time(option: str) -> None:
    made = set()
    for _ in range(4):
        argv = ["-arch=sm_90", *LTO, option, "caller.ltoir", "called.ltoir", "library.ltoir"]
        assert main([*argv, "-emit-ptx", "-o", "ours"]) == 0
        made.add(Path("ours").read_bytes())
    assert len(made) == 1


def test_line_information(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ltoir(tmp_path, "caller", "called", flags=("-lineinfo",))
    write_nvvm(tmp_path)
    monkeypatch.chdir(tmp_path)
    expected = link("90", "caller.ltoir", "called.ltoir")
    assert Path("ours").read_bytes() == expected.image


@pytest.mark.parametrize("arch", ["80", "90", "100"])
def test_cubins_beside_ltoir(arch: str) -> None:
    """nvlink leaves the LTO-IR of plain files out of such a link, and finds references undefined.

    What it should have made is what it makes of the cubins alone.
    """
    Path("user.cubin").write_bytes(oracle.compile(SOURCES["user"], arch))
    library = oracle.compile(SOURCES["library"], arch)
    words = [f"-arch=sm_{arch}", *LTO, "user.cubin", "library.ltoir", "-o", "ours", "-time=t2"]
    assert main(words) == 0
    plain = oracle.link([Path("user.cubin").read_bytes(), library], arch)
    assert plain.image is not None
    ours = Path("ours").read_bytes()
    assert kernels(ours) == kernels(plain.image) == {"_Z2k3Pi", "_Z2k4Pi", "_Z2k5Pi"}
    assert "_Z6wantedi" in functions(ours)
    assert "_Z4deadi" not in functions(ours)
    assert [line.split(" , ")[1] for line in Path("t2").read_text().splitlines()[1:]] == [
        "cicc",
        "ptxas",
    ]


@pytest.mark.parametrize("arch", ["80", "90", "100"])
def test_host_objects(arch: str, folder: Path) -> None:
    """The program is nvlink's where plain inputs call all functions of the LTO-IR."""
    caller, wanted = (write_host_object(folder, name, "lto_80") for name in ("caller", "wanted"))
    called, user, alone = (
        write_host_object(folder, name, f"sm_{arch}") for name in ("called", "user", "alone")
    )
    for inputs in (
        [caller, called],
        [called, caller],
        [user, wanted, called, caller],
        [wanted, alone, user],
        [alone, wanted, user, caller, called],
    ):
        expected = link(arch, *inputs)
        assert expected.image is not None
        assert compare(Path("ours").read_bytes(), expected.image) == []


@pytest.mark.parametrize("arch", ["80", "90", "100"])
def test_the_device_runtime_joins_where_it_is_called(arch: str, folder: Path) -> None:
    library = str(oracle.device_runtime() / "libcudadevrt.a")
    launcher = write_host_object(folder, "launcher", "lto_80")
    caller, called = (write_host_object(folder, name, "lto_80") for name in ("caller", "called"))
    expected = link(arch, caller, called, library)
    assert Path("ours").read_bytes() == expected.image
    expected = link(arch, launcher, library)
    assert expected.image is not None
    assert functions(expected.image) > {"_Z6parentPi", "__cudaCDP2LaunchDeviceV2"}
    assert compare(Path("ours").read_bytes(), expected.image) == []


@pytest.mark.parametrize("options", [(), ("-keep-system-libraries",)])
def test_a_name_alone_says_what_the_device_runtime_is(
    folder: Path, options: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    caller, called = (write_host_object(folder, name, "lto_80") for name in ("caller", "called"))
    data = Path(write_host_object(folder, "alone", "sm_90")).read_bytes()
    write(folder, {"my_cudadevrt.o": data, "named.a": gnu([("libcudadevrt.o", data)])})
    for name in ("my_cudadevrt.o", "named.a"):
        expected = link("90", *options, caller, called, name)
        assert Path("ours").read_bytes() == expected.image
    assert "not built for LTO" not in capfd.readouterr().err


def test_what_the_host_program_registers(folder: Path) -> None:
    library = str(oracle.device_runtime() / "libcudadevrt.a")
    caller, called, launcher, wanted = (
        write_host_object(folder, name, "lto_80")
        for name in ("caller", "called", "launcher", "wanted")
    )
    alone = write_host_object(folder, "alone", "sm_90")
    for inputs in (
        [caller, called, wanted, library],
        [caller, called, alone, library],
        [launcher, wanted, library],
        [alone, caller, called, "library.ltoir"],
        ["alone.ltoir", wanted, library],
        [alone, library],
    ):
        argv = ["-arch=sm_90", *LTO, *inputs]
        Path("r1").unlink(missing_ok=True)  # nvlink leaves a file alone that exists
        oracle.run_nvlink([*argv, "-o", "theirs", "--register-link-binaries=r1"], folder)
        assert main([*argv, "-o", "ours", "--register-link-binaries=r2"]) == 0
        assert Path("r2").read_text() == Path("r1").read_text()


def test_fat_binaries(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = write_fatbin(folder, "caller", "lto_80")
    second = write_fatbin(folder, "called", "lto_80")
    for inputs in ([first, second], [first, "called.ltoir"]):
        expected = link("90", *inputs)
        assert Path("ours").read_bytes() == expected.image
    capfd.readouterr()
    lines = write_fatbin(folder, "called", "lto_80", ("-lineinfo",))
    expected = link("90", first, lines)
    assert Path("ours").read_bytes() == expected.image
    assert capfd.readouterr().err == expected.stderr.replace("nvlink", "pylink")
    fast = write_fatbin(folder, "called", "lto_80", ("-ftz=true", "-fmad=false"))
    expected = link("90", first, fast)
    assert capfd.readouterr().err == expected.stderr.replace("nvlink", "pylink")


@pytest.mark.parametrize("arch", ["80", "90", "100"])
def test_ltoir_that_calls_cubins(arch: str) -> None:
    Path("called.cubin").write_bytes(oracle.compile(SOURCES["called"], arch))
    assert main([f"-arch=sm_{arch}", *LTO, "caller.ltoir", "called.cubin", "-o", "ours"]) == 0
    assert kernels(Path("ours").read_bytes()) == {"_Z2k1Pi", "_Z2k2Pf"}
    assert "_Z6helperi" in functions(Path("ours").read_bytes())


def errors(text: str) -> list[str]:
    """The errors among messages, without what pylink says of their places."""
    lines = [line.partition(" ")[2] for line in text.splitlines()]
    return [line.partition(" (")[0] for line in lines if line.startswith(("error", "fatal"))]


# Definitions in LTO-IR, and in a cubin. Functions that no cubin names are left out: they are local.
DEFINED_TWICE = [
    *product(("strong", "inlined", "static"), ("strong", "weak")),
    *product(("weak",), ("strong", "inlined", "weaker")),
    ("weaker", "weak"),
    *product(("kernel", "variable", "constant"), ("strong",)),
    *product(("strong",), ("kernel", "variable", "constant")),
]


@pytest.mark.parametrize(("first", "second"), DEFINED_TWICE)
def test_names_that_ltoir_and_a_cubin_define(
    first: str, second: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What nvlink refuses is refused in its words; of weak functions the same one stays."""
    optimized = write_host_object(folder, first, "lto_80")
    cubin = f"{second}.cubin"
    Path(cubin).write_bytes(oracle.compile(SOURCES[second], "90"))
    for inputs in ([optimized, cubin], [cubin, optimized]):
        Path("ours").unlink(missing_ok=True)
        expected = link("90", *inputs)
        assert errors(capfd.readouterr().err) == errors(expected.stderr)
        if expected.image is None:
            assert not Path("ours").exists()
        else:
            assert compare(Path("ours").read_bytes(), expected.image) == []


@pytest.mark.parametrize(
    ("kind", "arch"),
    [("cubin", "80"), ("object", "80"), ("archive", "100"), ("ptx", "90"), ("cubin", "100")],
)
def test_a_function_of_ltoir_that_another_input_defines(
    kind: str, arch: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    user, optimized = (
        write_host_object(folder, name, "lto_80") for name in ("user_of_twice", "strong")
    )
    nothing = write_host_object(folder, "nothing", "lto_80")
    for second in ("inlined", "weak"):
        other = write_host_object(folder, second, f"sm_{arch}")
        if kind == "cubin":
            other = f"{second}.cubin"
            Path(other).write_bytes(oracle.compile(SOURCES[second], arch))
        elif kind == "archive":
            write(folder, {"twice.a": gnu([(other, Path(other).read_bytes())])})
            other = "twice.a"
        elif kind == "ptx":
            other = "twice.ptx"
            Path(other).write_text(oracle.compile_ptx(SOURCES[second], "75"))
        for inputs in ([user, optimized, nothing, other], [other, optimized, user, nothing]):
            Path("ours").unlink(missing_ok=True)
            expected = link(arch, *inputs)
            assert errors(capfd.readouterr().err) == errors(expected.stderr)
            assert Path("ours").exists() == (expected.image is not None)


def test_ptx_names_no_function_that_nothing_uses(folder: Path) -> None:
    """Names of cubins leave no trace in the PTX, unless the program uses what they are of."""
    user = write_host_object(folder, "user_of_twice", "lto_80")
    for name in ("weak", "nothing", "alone"):
        Path(f"{name}.cubin").write_bytes(oracle.compile(SOURCES[name], "90"))
    expected = link("90", "-emit-ptx", user, "weak.cubin", "nothing.cubin", "alone.cubin")
    assert Path("ours").read_bytes() == expected.image


def test_ptx_of_a_program_whose_cubins_call_all_functions() -> None:
    Path("caller.cubin").write_bytes(oracle.compile(SOURCES["caller"], "90"))
    expected = link("90", "-emit-ptx", "called.ltoir", "caller.cubin")
    assert Path("ours").read_bytes() == expected.image


@pytest.mark.parametrize("arch", ["90", "100"])
def test_ptx_beside_ltoir(arch: str) -> None:
    Path("user.ptx").write_text(oracle.compile_ptx(SOURCES["user"], "75"))
    words = [f"-arch=sm_{arch}", *LTO, "user.ptx", "library.ltoir", "-o", "ours", "-time=t2"]
    assert main(words) == 0
    assert "_Z2k5Pi" in kernels(Path("ours").read_bytes())
    rows = [line.split(" , ")[:4] for line in Path("t2").read_text().splitlines()[1:]]
    assert rows == [
        ["user.ptx", "ptxas", "user.ptx", ""],
        ["lto.nvvm", "cicc", "", "lto.ptx"],
        ["lto.ptx", "ptxas", "", "lto.cubin"],
    ]


def test_the_row_of_the_compiler_is_without_its_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = folder / "slow.py"
    slow.write_text(
        "import runpy, time\ntime.sleep(1)\n"
        f"runpy.run_path({worker.__file__!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(worker, "__file__", str(slow))
    begun = time.monotonic()
    assert main(["-arch=sm_90", *LTO, "alone.ltoir", "-o", "ours", "-time=slow.csv"]) == 0
    taken = 1000 * (time.monotonic() - begun)
    rows = [line.split(" , ") for line in Path("slow.csv").read_text().splitlines()[1:]]
    (compiled,) = (float(row[6]) for row in rows if row[1] == "cicc")
    assert 1 < compiled < taken - 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("caller.ltoir",), "error   : lto.ptx: Unresolved extern function '_Z6helperi'"),
        (
            ("caller.ltoir", "caller.ltoir"),
            "fatal   : Link-time optimization failed: .*'gvar': symbol multiply defined",
        ),
        (("-Xnvvm=-bogus", "alone.ltoir"), "fatal   : .* -bogus is an unsupported option"),
        (("-split-compile=-1", "alone.ltoir"), "error   : lto.ptx: Invalid value '-1'"),
    ],
)
def test_failures(words: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    expected = link("90", *words)
    assert expected.code == 1
    assert re.search(f"^pylink {message}", capfd.readouterr().err, re.MULTILINE)
    assert not Path("ours").exists()


@pytest.mark.parametrize("code", ["one", "several", "lines"])
def test_builds_of_nvcc(code: str, tmp_path: Path) -> None:
    """A program and a library, compiled with -dlto and linked by nvcc through pylink."""
    flags = {
        "one": ("-dlto", "-arch=sm_90"),
        "several": (
            "-gencode=arch=compute_80,code=lto_80",
            "-gencode=arch=compute_100,code=lto_100",
        ),
        "lines": ("-dlto", "-arch=sm_120", "-lineinfo"),
    }
    final = {"several": ("-dlto", "-gencode=arch=compute_90,code=sm_90")}
    toolkit = Toolkit(tmp_path)
    give_nvvm(toolkit.root)
    nvcc = toolkit.root / "bin" / "nvcc"
    objects = []
    for name in ("caller", "called", "wanted", "main"):
        source = tmp_path / f"{name}.cu"
        source.write_text(MAIN if name == "main" else SOURCES[name])
        objects.append(tmp_path / f"{name}.o")
        run(nvcc, "-rdc=true", *flags[code], "-c", source, "-o", objects[-1])
    library = tmp_path / "libwanted.a"
    run(nvcc, "-lib", objects[2], "-o", library)
    program = tmp_path / "program"
    run(nvcc, *final.get(code, flags[code]), *objects[:2], objects[3], library, "-o", program)
    assert program.read_bytes().startswith(b"\x7fELF")
    assert toolkit.check() == 1


def give_nvvm(root: Path) -> None:
    """Put libnvvm where nvlink looks for it in a toolkit, also in one made of wheels."""
    nvvm = root / "nvvm"
    real = nvvm.resolve()
    if (real / "lib64").exists():
        return
    nvvm.unlink()
    write_nvvm(root)
    for path in real.iterdir():
        (nvvm / path.name).symlink_to(path)


def test_reports_about_a_link_that_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    reports = ["--Map=map", "--profile=profile", "--time-trace=trace", "--depfile=depfile"]
    reports += ["--pass-remarks=.*", "--pass-remarks-output=remarks", "-v", "-dump-callgraph"]
    assert main(["-arch=sm_90", *LTO, "alone.ltoir", "-o", "ours", *reports]) == 0
    assert "no map is written" in capfd.readouterr().err
    assert not Path("map").exists()
    events = {event["name"]: event for event in timetrace.load("trace")}
    assert {"init", "cicc-lto", "compile_lto", "ptxas-lto", "assemble", "write"} <= set(events)
    actions = [action.function_name for action in read_report("profile").launches()]
    assert actions == ["init", "cicc-lto", "ptxas-lto", "write"]
    assert Path("depfile").read_text().startswith("ours: alone.ltoir")
    Path("user.cubin").write_bytes(oracle.compile(SOURCES["user"], "90"))
    assert main(["-arch=sm_90", *LTO, "library.ltoir", "user.cubin", "-o", "ours", *reports]) == 0
    assert "lto.cubin" in Path("map").read_text()
    assert all(Path(name).stat().st_size for name in ("profile", "trace", "remarks"))


def test_phases_of_the_trace(capfd: pytest.CaptureFixture[str]) -> None:
    def phases(*words: str) -> list[str]:
        argv = ["-arch=sm_90", *LTO, "-edbg=32", *words, "-o", "ours"]
        assert main(argv) == 0
        printed = capfd.readouterr().err.splitlines()
        return [line.split()[0] for line in printed if " time: " in line]

    linking = ["read", "merge", "layout", "relocate", "finalize", "write"]
    Path("user.cubin").write_bytes(oracle.compile(SOURCES["user"], "90"))
    assert phases("user.cubin", "library.ltoir") == ["cicc-lto", "ptxas-lto", *linking]
    assert phases("alone.ltoir") == ["cicc-lto", "ptxas-lto", "write"]
    assert phases("-emit-ptx", "alone.ltoir") == ["cicc-lto", "write"]


@pytest.mark.parametrize("release", ["12.4", "12.9"])
@pytest.mark.parametrize("arch", ["80", "90"])
@pytest.mark.parametrize("options", [(), ("-emit-ptx",)])
def test_ltoir_of_cuda_12(release: str, arch: str, options: tuple[str, ...]) -> None:
    """Recorded: NVRTC of that release, `-arch=compute_80 -dlto -rdc=true`, of the sources there."""
    recorded = Path(__file__).parent / "ltoir"
    files = [str(recorded / f"{name}-{release}.ltoir") for name in ("main", "lib")]
    expected = link(arch, *options, *files)
    assert expected.image is not None
    assert Path("ours").read_bytes() == expected.image


def test_a_compiler_of_another_release_is_noted(capfd: pytest.CaptureFixture[str]) -> None:
    """nvJitLink is that of 13.0 here."""
    words = ["-arch=sm_80", *LTO, "-emit-ptx", "-o", "ours", "caller.ltoir", "called.ltoir"]
    for release, noted in (("13.0", False), ("13.3", True)):
        assert main([f"--nvlink-version={release}", "--diagnostics_format=text", *words]) == 0
        said = "nvJitLink of CUDA 13.0, not of 13.3"
        assert (said in capfd.readouterr().err) == noted
    assert main(words) == 0
    assert not capfd.readouterr().err


# A link by the package alone, with the words of the command line.
PROGRAM = "import sys; from pylink.command.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A folder of modules that has nvJitLink 13.5 and nothing else, as pip leaves it."""
    if "13.5" not in oracle.others():
        pytest.skip("needs the tools of CUDA 13.5: scripts/install_oracle.py")
    found = oracle.find_release("13.5")
    assert found is not None
    library = found.bin.parent / "lib" / "libnvJitLink.so.13"
    folder = tmp_path / "site"
    (folder / "nvidia" / "cu13" / "lib").mkdir(parents=True)
    (folder / "nvidia" / "cu13" / "lib" / library.name).symlink_to(library)
    return folder


def link_beside(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "-arch=sm_90", *LTO, *words, "-o", "ours"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_newer_nvjitlink_in_the_environment_is_left_alone(newer: Path) -> None:
    """It lies before that of 13.0, whose ptxas does not read its PTX."""
    expected = link("90", "caller.ltoir", "called.ltoir")
    Path("ours").unlink()
    done = link_beside(newer, "caller.ltoir", "called.ltoir")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("ours").read_bytes() == expected.image


def test_a_newer_nvjitlink_alone_is_refused_by_name(newer: Path, tmp_path: Path) -> None:
    """The environment has no other, and the toolkit in PATH is of 13.0."""
    alone = str(tmp_path / "alone.py")
    Path(alone).write_text(
        "import sys\n"
        "from pylink.subtools import compilers\n"
        f"compilers.wheel_directories = lambda: [{str(newer / 'nvidia' / 'cu13')!r}]\n" + PROGRAM
    )
    done = subprocess.run(
        [sys.executable, alone, "-arch=sm_90", *LTO, "caller.ltoir", "-o", "ours"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "needs nvJitLink, and ptxas of the same release; found nvJitLink 13.5 (" in done.stderr
    assert "), ptxas 13.0 (" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("ours").exists()
