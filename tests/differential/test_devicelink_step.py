"""`pylink dlink` beside `nvcc -dlink`: the same words, the same result, the same status."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.containers import differences
from helpers.hostlink import (
    compile_recorder,
    compile_units,
    contents,
    needs_host_compiler,
    record,
    run,
    sections,
    symbols,
)

from pylink.devicelink.architectures import find_architectures
from pylink.devicelink.request import LeftToNvcc

pytestmark = [oracle.needs_oracle, needs_host_compiler]

ARCHS = ("80", "90", "100")
OBJECTS = ["first.o", "second.o", "third.o"]
ALL = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ARCHS]
# A unit that launches kernels from the device, and has a managed variable.
PARALLEL = {
    "parent.cu": """
__managed__ int total;
__global__ void child(int *p) { *p += 1; }
__global__ void parent(int *p) { child<<<1, 1>>>(p + total); }
"""
}


# A unit that needs no other.
COMMON = {"common.cu": "__device__ int common(int x) { return x + 1; }\n"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("step")
    compile_units(place, ARCHS)
    compile_units(place, ("90",), PARALLEL)
    compile_recorder(place)
    (place / "main.c").write_text("int main(void) { return 0; }\n")
    run(place, "gcc", "-fPIC", "-c", "main.c", "-o", "main.o")
    run(place, "ar", "rcs", "libthird.a", "third.o")
    (place / "words.rsp").write_text('first.o "second.o"\nthird.o -L "." \n')
    (place / "sub").mkdir()
    return place


def dlink(folder: Path, words: Sequence[str], **variables: str) -> tuple[int, str]:
    """Status and messages of pylink; nvcc is that of the oracle."""
    home = str(oracle.toolchain().bin.parent)
    done = subprocess.run(
        [sys.executable, "-m", "pylink", "dlink", "--cuda", home, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout + done.stderr


def real(folder: Path, words: Sequence[str], **variables: str) -> tuple[int, str]:
    """Status and messages of nvcc."""
    done = subprocess.run(
        [oracle.toolchain().tool("nvcc"), "-dlink", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout + done.stderr


def same_step(folder: Path, words: Sequence[str], **variables: str) -> None:
    """Assert that both make the same object of these words."""
    made = dlink(folder, [*words, "-o", "made.o"], **variables)
    assert made == (0, ""), made
    assert real(folder, [*words, "-o", "real.o"], **variables)[0] == 0
    assert symbols(folder, "made.o") == symbols(folder, "real.o")
    assert sections(folder, "made.o") == sections(folder, "real.o")
    mine, theirs = (contents(folder, f"{name}.o", ".nv_fatbin") for name in ("made", "real"))
    assert differences(mine, theirs) == []
    if "__nv_module_id" in sections(folder, "real.o"):
        mine, theirs = (
            contents(folder, f"{name}.o", "__nv_module_id") for name in ("made", "real")
        )
        assert mine == theirs


CMAKE = [
    "-forward-unknown-to-host-compiler",
    "-O3",
    "-DNDEBUG",
    "-std=c++17",
    "--generate-code=arch=compute_80,code=[compute_80,sm_80]",
    "--generate-code=arch=compute_90,code=[compute_90,sm_90]",
    "-Xcompiler=-fPIC",
    "-Wno-deprecated-gpu-targets",
    "-shared",
    "-dlink",
    "main.o",
    *OBJECTS,
]
TORCH = [
    *OBJECTS,
    "-D__CUDA_NO_HALF_OPERATORS__",
    "--expt-relaxed-constexpr",
    "--compiler-options",
    "'-fPIC'",
    "-dlink",
    "-L.",
    "-shared",
    "-gencode=arch=compute_90,code=sm_90",
]
STEPS: dict[str, list[str]] = {
    "one": ["-arch=sm_90", "-shared", *OBJECTS],
    "several": [*ALL, "-shared", *OBJECTS],
    "backwards": ["-arch=compute_80", "-code=sm_80,sm_86", "-shared", *OBJECTS],
    "PTX is not a part": [
        "-gencode",
        "arch=compute_90,code=[sm_90,compute_90]",
        "-shared",
        *OBJECTS,
    ],
    "cmake": CMAKE,
    "torch": TORCH,
    "xmake": [
        *OBJECTS,
        "-dlink",
        "-shared",
        "-m64",
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-L.",
    ],
    "BLT": ["--device-link", "-arch=sm_90", "-std=c++17", "-g", "-shared", *OBJECTS],
    "FindCUDA": [
        "-m64",
        "-ccbin",
        "gcc",
        *ALL,
        "-Xcompiler",
        "-fPIC",
        "-dlink",
        *OBJECTS,
        "-shared",
    ],
    "bazel": ["-dlink", *ALL, "-ccbin", "gcc", "-Xcompiler", "-fPIC", *OBJECTS, "-shared"],
    "line information": ["-arch=sm_90", "-lineinfo", "-shared", "./first.o", *OBJECTS[1:]],
    "archive": ["-arch=sm_90", "-shared", "first.o", "second.o", "libthird.a"],
    "library": ["-arch=sm_90", "-shared", "first.o", "second.o", "-L", ".", "-lthird", "-lm"],
    "size": [*ALL, "-compress-mode=size", "-shared", *OBJECTS],
    "none": [*ALL, "-no-compress", "-shared", *OBJECTS],
    "hidden": ["-arch=sm_90", "-shared", "-Xcompiler", "-fvisibility=hidden", *OBJECTS],
    "no device code": [*ALL, "-shared", "main.o"],
    "options file": ["-arch=sm_90", "-shared", "--options-file", "words.rsp"],
    "without the device runtime": ["-arch=sm_90", "-shared", "-cudadevrt=none", *OBJECTS],
    "options for the link": [
        "-arch=sm_90",
        "-shared",
        "-Xnvlink",
        "--suppress-stack-size-warning",
        *OBJECTS,
    ],
}


@pytest.mark.parametrize("name", STEPS)
def test_the_object_is_that_of_nvcc(folder: Path, name: str) -> None:
    same_step(folder, STEPS[name])


def test_debug_code_is_marked_and_compressed(folder: Path) -> None:
    same_step(folder, ["-arch=sm_90", "-G", "-shared", *OBJECTS])


def test_line_information_beside_debug_code_is_warned_of_by_nvcc(folder: Path) -> None:
    words = ["-arch=sm_90", "-G", "-lineinfo", *OBJECTS, "-o", "made.o"]
    made = dlink(folder, words)
    assert made == real(folder, words)
    assert made[1].startswith("nvcc warning : '--device-debug (-G)' overrides")


def test_variables_of_nvcc_count(folder: Path) -> None:
    same_step(folder, ["-shared", *OBJECTS], NVCC_APPEND_FLAGS="-arch=sm_90 -lineinfo")
    same_step(folder, ["-shared", *OBJECTS], NVCC_PREPEND_FLAGS="-arch=sm_100")


@pytest.mark.parametrize("form", ["fatbin", "cubin"])
def test_other_outputs_and_names_nobody_gave(folder: Path, form: str) -> None:
    words = [*ALL, f"-{form}", *OBJECTS]
    said = {}
    for tool in (dlink, real):
        for file in folder.glob("a_dlink.*"):
            file.unlink()
        assert tool(folder, words)[0] == 0
        said[tool] = (folder / f"a_dlink.{form}").read_bytes()
    if form == "fatbin":
        assert differences(said[dlink], said[real]) == []
    else:
        assert compare(said[dlink], said[real]) == []
    assert dlink(folder, ["-arch=sm_90", "-odir", "sub", *OBJECTS])[0] == 0
    assert (folder / "sub" / "a_dlink.o").is_file()


REGISTERED = ("first.o", "second.o", "third.o", "parent.o")


def test_a_program_registers_the_same_with_the_device_runtime(folder: Path) -> None:
    words = ["-arch=sm_90", "-shared", *REGISTERED, f"-L{oracle.device_runtime()}"]
    same_step(folder, words)
    runtime = oracle.device_runtime() / "libcudadevrt.a"
    said = []
    for step in ("made.o", "real.o"):
        run(folder, "g++", "main.o", *REGISTERED, step, runtime, "recorder.o", "-o", "program")
        said.append(re.sub(r"linked: \d+ bytes, hash \w+", "linked", record(folder, "program")))
    assert said[0] == said[1]
    assert "managed variable of 1: total" in said[0]
    assert said[0].count("part:") >= 5  # the units, and that of the device runtime


def plain(text: str) -> list[str]:
    """Messages without the name of the tool, and without notes, which nvcc has none of."""
    lines = [re.sub(r"^(pylink|nvlink|nvcc) ", "", line) for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("note ")]


STATUSES: dict[str, tuple[int, list[str]]] = {
    "undefined": (255, ["-arch=sm_90", "first.o"]),
    "undefined for several": (255, [*ALL, "first.o", "third.o"]),
    "missing": (1, ["-arch=sm_90", "first.o", "absent.o"]),
    "no input": (1, ["-arch=sm_90"]),
    "unknown option": (1, ["-arch=sm_90", "--unheard-of", *OBJECTS]),
    "unknown kind of file": (1, ["-arch=sm_90", "libx.unknown"]),
    "unknown architecture": (1, ["-arch=sm_17", *OBJECTS]),
    "real where virtual": (1, ["-arch=sm_90", "-code=sm_90", *OBJECTS]),
    "incompatible": (1, ["-gencode", "arch=compute_90a,code=sm_90", *OBJECTS]),
    "no code": (0, OBJECTS),
    "no code for one": (0, ["-gencode=arch=compute_90a,code=sm_90a", "-arch=sm_75", *OBJECTS]),
    "no number": (1, ["-arch=sm_90", *OBJECTS, "-O"]),
    "unknown standard": (1, ["-arch=sm_90", "-std=c++1", *OBJECTS]),
    "twice": (0, ["-arch=sm_80", "-arch=sm_90", *OBJECTS]),
}


@pytest.mark.parametrize("name", STATUSES)
def test_statuses_and_messages_are_those_of_nvcc(folder: Path, name: str) -> None:
    status, words = STATUSES[name]
    made, theirs = dlink(folder, [*words, "-o", "a.o"]), real(folder, [*words, "-o", "b.o"])
    assert (made[0], theirs[0]) == (status, status), (made, theirs)
    assert plain(made[1]) == plain(theirs[1])


@pytest.mark.parametrize("words", [["-arch=sm_90", "first.o"], [*ALL, "first.o", "absent.o"]])
def test_an_output_stays_when_the_step_fails(folder: Path, words: list[str]) -> None:
    (folder / "kept.o").write_text("old")
    before = sorted(os.listdir(folder))
    assert dlink(folder, [*words, "-o", "kept.o"])[0] in (1, 255)
    assert (folder / "kept.o").read_text() == "old"
    assert sorted(os.listdir(folder)) == before


def test_an_input_is_never_overwritten(folder: Path) -> None:
    before = (folder / "first.o").read_bytes()
    status, said = dlink(folder, ["-arch=sm_90", *OBJECTS, "-o", "first.o"])
    assert status == 1
    assert "first.o" in said
    assert (folder / "first.o").read_bytes() == before


def test_what_must_be_compiled_goes_to_nvcc(folder: Path) -> None:
    words = ["-arch=sm_90", "-v", "first.cu", "second.o", "third.o", "-rdc=true", "-o", "handed.o"]
    status, said = dlink(folder, words)
    assert status == 0
    assert said.startswith(f"#$ {oracle.toolchain().tool('nvcc')} -dlink ")
    assert len([symbol for symbol in symbols(folder, "handed.o") if symbol[3] == "defined"]) == 3


def test_without_nvcc_it_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    for words, expected in (
        (["first.cu"], "Input file 'first.cu' is left to nvcc"),
        (["-keep", "first.o"], "Option '-keep' is left to nvcc"),
        (["-Xcompiler", "-flto", "first.o"], "Option '-Xcompiler -flto' is left to nvcc"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "pylink", "dlink", "--cuda", tmp_path, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert expected in done.stderr


def test_the_result_does_not_depend_on_threads(folder: Path) -> None:
    words = [*ALL, *OBJECTS]
    for threads in ("1", "2", "7"):
        assert dlink(folder, [*words, "-o", f"t{threads}.o"], PYLINK_THREADS=threads)[0] == 0
    assert (folder / "t1.o").read_bytes() == (folder / "t2.o").read_bytes()
    assert (folder / "t1.o").read_bytes() == (folder / "t7.o").read_bytes()


@pytest.mark.parametrize("mode", ["default", "none"])
def test_links_that_take_the_same_code_share_it(folder: Path, mode: str) -> None:
    """Code for sm_80 is linked for three architectures, beside code of their own in one object."""
    compile_units(folder, ["80", "90"], COMMON, f"-compress-mode={mode}")
    archs = ["80", "86", "89", "90"]
    gencode = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
    words = [*gencode, "-shared", "common.o", "-L.", "-lthird", *OBJECTS[:2], "libthird.a"]
    same_step(folder, words)
    made = (folder / "made.o").read_bytes()
    for threads in ("1", "2", "3", "8"):
        assert dlink(folder, [*words, "-o", "made.o"], PYLINK_THREADS=threads) == (0, "")
        assert (folder / "made.o").read_bytes() == made


def test_objects_of_two_machines_are_refused(folder: Path) -> None:
    data = bytearray((folder / "main.o").read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    (folder / "other.o").write_bytes(data)
    status, said = dlink(folder, ["-arch=sm_90", "main.o", "other.o", "-o", "m.o"])
    assert status == 1
    assert "'other.o'" in said


def test_what_nvcc_makes_of_objects_of_two_machines_cannot_be_linked(folder: Path) -> None:
    """The reason to refuse them: the object wants a wrapper that is in the file of the other."""
    data = bytearray((folder / "second.o").read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    (folder / "foreign.o").write_bytes(data)
    names = ["first.o", "foreign.o", "third.o"]
    assert real(folder, ["-arch=sm_90", *names, "-o", "two.o"])[0] == 0
    undefined = run(folder, "nm", "-u", "two.o")
    assert undefined.count("__fatbinwrap") == len(names)
    command = ["gcc", "-shared", "-o", "two.so", *names, "two.o"]
    linked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert linked.returncode != 0
    assert "foreign.o" in linked.stderr


RUN_BY = {
    "80": ["sm_80", "sm_86", "sm_90", "compute_80"],
    "90": ["sm_90", "sm_100", "sm_120", "lto_90"],
    "90a": ["sm_90a", "compute_90a"],
    "100": ["sm_100", "sm_103", "sm_120"],
    "100f": ["sm_100", "sm_103", "sm_103f"],
    "120": ["sm_120", "sm_121", "sm_100"],
}


def test_architectures_and_their_order_are_those_of_nvcc(folder: Path) -> None:
    """Random options against what --dryrun starts nvlink for."""
    chance = random.Random(29)
    tried = 0
    for _ in range(80):
        words: list[str] = []
        arch = None
        codes: list[str] = []
        texts: list[str] = []
        if chance.random() < 0.3:
            arch = chance.choice(["sm_80", "sm_90a", "compute_80", "all-major", "all", "sm_100f"])
            words.append(f"-arch={arch}")
            if arch == "compute_80":
                codes = chance.choices(["sm_80", "sm_86", "sm_89", "compute_80"], k=2)
                words.append(f"-code={','.join(codes)}")
        for _ in range(chance.randrange(4) if arch else chance.randrange(1, 4)):
            virtual = chance.choice(sorted(RUN_BY))
            names = chance.choices(RUN_BY[virtual], k=2)
            inside = chance.choice([names[0], f"[{','.join(names)}]"])
            texts.append(f"arch=compute_{virtual},code={inside}")
            words.append(f"-gencode={texts[-1]}")
        status, said = real(folder, ["--dryrun", *words, "first.o"])
        theirs = re.findall(r"nvlink .*--arch=(sm_\w+)", said)
        try:
            mine = find_architectures(arch, codes, texts)
        except LeftToNvcc:
            assert status == 1 or not theirs, words
            continue
        assert status == 0, words
        assert mine == theirs, words
        tried += 1
    assert tried > 40


def times(text: str) -> list[tuple[str, str, str]]:
    """Phases of a table of -time, with the source files and the architecture of each row."""
    lines = text.splitlines()
    assert lines[0].startswith("source file name , phase name")
    cells = [re.split(" ?, ", line) for line in lines[1:]]
    assert all(row[5] == "nvcc" and float(row[6]) >= 0 and row[7] == "ms" for row in cells)
    return [(row[0], row[1], row[4]) for row in cells]


@pytest.mark.parametrize("form", [[], ["-fatbin"], ["-cubin"], ["-r"]])
def test_the_table_of_times_has_the_rows_of_nvcc(folder: Path, form: list[str]) -> None:
    found = []
    for tool in (dlink, real):
        (folder / "times.csv").unlink(missing_ok=True)
        words = [*ALL, *form, *OBJECTS, "-time", "times.csv", "-o", "timed.o"]
        assert tool(folder, words)[0] == 0
        found.append(times((folder / "times.csv").read_text()))
    assert found[0] == found[1]


def test_a_step_has_a_depfile_and_each_link_a_map(folder: Path) -> None:
    words = [*ALL, "first.o", "second.o", "-L.", "-lthird", "-o", "sub/made.o"]
    options = "--depfile=%o.d --Map=%o.%a.map"
    assert dlink(folder, words, PYLINK_OPTIONS=options) == (0, "")
    rule = (folder / "sub" / "made.o.d").read_text().splitlines()[0]
    target, _, files = rule.partition(": ")
    assert target == "sub/made.o"
    named = [os.path.relpath(folder / file, folder) for file in files.split()]
    assert named[:3] == ["first.o", "second.o", "libthird.a"]
    for arch in ARCHS:
        assert "scale" in (folder / "sub" / f"made.o.sm_{arch}.map").read_text()
    plain = (folder / "sub" / "made.o").read_bytes()
    assert dlink(folder, words) == (0, "")
    assert (folder / "sub" / "made.o").read_bytes() == plain


def test_messages_of_a_step_as_text_and_as_records(folder: Path) -> None:
    words = [*ALL, "first.o", "-o", "failed.o", "-Xnvlink"]
    status, said = dlink(folder, [*words, "--diagnostics_format=text"])
    assert status == 255
    assert said.count("error #") + said.count("error: ") == 1, said
    status, said = dlink(folder, [*words, "--sarif-output=%a.sarif"])
    assert status == 255
    assert (folder / "sm_80.sarif").is_file()
    assert not (folder / "sm_90.sarif").exists()  # which comes later


# Architectures for which the objects have no code: two of four links warn of each object.
UNCOMPILED = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ("80", "110", "90", "120")]


def test_a_step_has_one_log_and_one_document(folder: Path) -> None:
    words = [*UNCOMPILED, *OBJECTS, "-o", "made.o", "-Xnvlink"]
    status, said = dlink(folder, [*words, "--diag-log=%o.log,--sarif-output=made.sarif"])
    assert status == 0
    expected = [(name, arch) for arch in ("sm_110", "sm_120") for name in OBJECTS]
    log = (folder / "made.o.log").read_text().splitlines()
    tops = [line for line in log if line.startswith("W ")]
    assert [(line.split('"')[1], line[-7:-1]) for line in tops] == expected
    (run,) = json.loads((folder / "made.sarif").read_text())["runs"]
    assert run["invocations"][0]["executionSuccessful"]
    found = [
        (os.path.basename(place["physicalLocation"]["artifactLocation"]["uri"]), arch)
        for result in run["results"]
        for place, arch in [(result["locations"][0], result["properties"]["arch"])]
    ]
    assert found == expected
    # Messages are shown as without them.
    assert said == dlink(folder, words[:-1])[1]


def test_a_document_of_a_step_that_fails_says_so(folder: Path) -> None:
    words = [*UNCOMPILED, "first.o", "-o", "failed.o", "-Xnvlink", "--sarif-output=failed.sarif"]
    assert dlink(folder, words)[0] == 255
    (run,) = json.loads((folder / "failed.sarif").read_text())["runs"]
    assert run["invocations"][0]["exitCode"] == 255
    # Links after the first that fails say nothing.
    assert [result["properties"]["arch"] for result in run["results"]] == ["sm_80"]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_records_of_all_links_are_one_array(folder: Path, threads: str) -> None:
    words = [*UNCOMPILED, *OBJECTS, "-o", "made.o", "-Xnvlink", "--diagnostics_format=sarif"]
    status, said = dlink(folder, words, PYLINK_THREADS=threads)
    assert status == 0
    records = json.loads(f"[{said}]")
    assert len(records) == 2 * len(OBJECTS)
    assert {record["ruleId"] for record in records} == {"EC203"}


@pytest.mark.parametrize("report", ["--diag-log", "--sarif-output"])
def test_reports_of_a_step_overwrite_neither_inputs_nor_the_output(
    folder: Path, report: str
) -> None:
    before = (folder / "first.o").read_bytes()
    words = [*ALL, *OBJECTS, "-o", "fresh.o", "-Xnvlink"]
    for name in ("first.o", "fresh.o"):
        status, said = dlink(folder, [*words, f"{report}={name}"])
        assert status == 1
        assert said.startswith("pylink fatal   : ")
        assert report in said
    assert (folder / "first.o").read_bytes() == before
    assert not (folder / "fresh.o").exists()


PHASES = ["read", "merge", "layout", "relocate", "finalize", "write"]


def test_each_link_prints_its_phases(folder: Path) -> None:
    """One link after the other, whatever the number of threads."""
    words = [*ALL, *OBJECTS, "-o", "made.o", "-Xnvlink", "-edbg=32"]
    status, said = dlink(folder, words, PYLINK_THREADS="3")
    assert status == 0
    rows = [re.fullmatch(r"([\w-]+) time: [0-9.]+", line) for line in said.splitlines()]
    assert [row[1] for row in rows if row] == PHASES * len(ALL)
    assert None not in rows


def test_each_link_has_remarks_and_a_profile(folder: Path) -> None:
    words = [*ALL, *OBJECTS, "-o", "sub/made.o", "-Xnvlink"]
    assert dlink(folder, words[:-1]) == (0, "")
    plain = (folder / "sub" / "made.o").read_bytes()
    options = "--pass-remarks-output=%o.%a.yaml,--profile=%o.%a.rep,--time-trace=%o.%a.json"
    assert dlink(folder, [*words, options]) == (0, "")
    assert (folder / "sub" / "made.o").read_bytes() == plain
    for arch in ARCHS:
        start = folder / "sub" / f"made.o.sm_{arch}"
        assert "Pass:" in start.with_name(f"{start.name}.yaml").read_text()
        events = json.loads(start.with_name(f"{start.name}.json").read_text())["traceEvents"]
        assert set(PHASES) <= {event["name"] for event in events}
        shown = run(folder, sys.executable, "-m", "pylink", "report", f"{start}.rep")
        assert f"sm_{arch}" in shown


@pytest.mark.parametrize(
    "option", ["Map", "profile", "time-trace", "pass-remarks-output", "reproduce"]
)
def test_links_never_write_over_each_others_files(folder: Path, option: str) -> None:
    words = [*ALL, *OBJECTS, "-o", "apart.o", "-Xnvlink"]
    status, said = dlink(folder, [*words, f"--{option}=one.out"])
    assert status != 0
    first, second = ARCHS[:2]
    assert f"Links for sm_{first} and sm_{second} both write 'one.out' (--{option})" in said
    assert not (folder / "one.out").exists()
    assert not (folder / "apart.o").exists()
    # A device takes what all of them write, and a step for one architecture has one link.
    assert dlink(folder, [*words, f"--{option}=/dev/null"])[0] == 0
    (only, *_) = ALL
    assert dlink(folder, [only, *words[len(ALL) :], f"--{option}=one.out"])[0] == 0
    (folder / "one.out").unlink()
    (folder / "apart.o").unlink()


@pytest.mark.parametrize("count", [1, 3])
def test_each_link_of_a_step_is_packed_and_can_be_repeated(folder: Path, count: int) -> None:
    """Also without the files that it read, and where it failed."""
    packed = folder / f"packed{count}"
    packed.mkdir()
    for name in ("first.o", "second.o", "libthird.a"):
        (packed / name).write_bytes((folder / name).read_bytes())
    words = [*ALL[:count], "-no-compress", "-L.", "-o", "made.o"]
    options = "--reproduce=%o.%a.tar.zst"
    inputs = ["first.o", "second.o", "-lthird"]
    assert dlink(packed, [*words, *inputs], PYLINK_OPTIONS=options) == (0, "")
    made = (packed / "made.o").read_bytes()
    assert dlink(packed, [*words, *inputs]) == (0, "")
    assert (packed / "made.o").read_bytes() == made
    for name in ("first.o", "second.o", "libthird.a"):
        (packed / name).unlink()
    for arch in ARCHS[:count]:
        again = (f"made.o.sm_{arch}.tar.zst", "-o", "again.cubin")
        assert run(packed, sys.executable, "-m", "pylink", "reproduce", *again) == ""
        assert (packed / "again.cubin").read_bytes() in made
    failing = [*ALL[:count], "first.o", "-o", "failed.o", "-Xnvlink", "--reproduce=%a.tar.zst"]
    assert dlink(folder, failing)[0] == 255
    again = (f"sm_{ARCHS[0]}.tar.zst", "-o", "again.cubin")
    said = run(folder, sys.executable, "-m", "pylink", "reproduce", *again, status=255)
    assert "Undefined reference to" in said


DROPPED = {
    "-arch=sm_70": "sm_70 was last supported by CUDA 12.9",
    "-gencode=arch=compute_60,code=sm_61": "compute_60 was last supported by CUDA 12.9",
    "-gencode=arch=compute_101,code=sm_101": "compute_101 is called compute_110 since CUDA 13.0",
}


@pytest.mark.parametrize("option", DROPPED)
def test_an_architecture_of_the_past_is_named_with_its_last_release(
    folder: Path, option: str, tmp_path: Path
) -> None:
    note = f"pylink note    : {DROPPED[option]}\n"
    theirs = real(folder, [option, *OBJECTS, "-o", "past.o"])
    assert dlink(folder, [option, *OBJECTS, "-o", "past.o"]) == (theirs[0], theirs[1] + note)
    # Without a toolkit; the first --cuda counts for nothing then.
    said = run(
        folder,
        *(sys.executable, "-m", "pylink", "dlink", "--cuda", tmp_path),
        *(option, *OBJECTS, "-o", "past.o"),
        status=1,
    )
    assert said.endswith(note)
    assert not (folder / "past.o").exists()


def damaged(data: bytes, at: int) -> bytes:
    """An object whose container, or first entry, states a size that it does not have."""
    start = data.find(bytes.fromhex("50ed55ba")) + at
    return data[:start] + (1 << 40).to_bytes(8, "little") + data[start + 8 :]


@pytest.mark.parametrize("fault", ["container", "entry", "cut"])
def test_bad_input_has_one_message_and_leaves_the_old_output(folder: Path, fault: str) -> None:
    data = (folder / "first.o").read_bytes()
    cut = data[: len(data) // 2]
    bad = {"container": damaged(data, 8), "entry": damaged(data, 24), "cut": cut}
    (folder / "bad.o").write_bytes(bad[fault])
    (folder / "kept.o").write_text("old")
    status, said = dlink(folder, [*ALL, "bad.o", *OBJECTS[1:], "-o", "kept.o"])
    assert status == 255
    (line,) = said.splitlines()  # of the first architecture, none of the later ones
    assert "bad.o" in line
    assert line.endswith("(target: sm_80)")
    assert (folder / "kept.o").read_text() == "old"


def test_a_full_disk_is_one_message(folder: Path) -> None:
    words = ["-arch=sm_90", *OBJECTS, "-o", "/dev/full"]
    assert dlink(folder, words) == (
        1,
        "pylink fatal   : Writing '/dev/full' failed: No space left on device\n",
    )


# A unit of which all names are its own: copies with other ids can be linked together.
LONELY = {
    "lonely.cu": """
static __device__ int own = 3;
static __global__ void kernel(int *p) { *p += own; }
static void launch(int *p) { kernel<<<1, 1>>>(p); }
static void (*volatile kept)(int *) __attribute__((used)) = launch;
"""
}
UNITS = 400


def test_four_hundred_units_are_registered_by_a_library_and_a_program(folder: Path) -> None:
    """Compiled once; each copy has an id of its own, of the same length."""
    compile_units(folder, ["80", "90"], LONELY, "-no-compress")
    compiled = (folder / "lonely.o").read_bytes()
    text = contents(folder, "lonely.o", "__nv_module_id").rstrip(b"\0")
    own = text[1:9]
    assert compiled.count(own) > 10
    many = folder / "many"
    many.mkdir()
    names = []
    for number in range(UNITS):
        names.append(f"many/{number}.o")
        (folder / names[-1]).write_bytes(compiled.replace(own, b"%08x" % number))
    (folder / "many.rsp").write_text("\n".join(names))
    words = [*ALL[:2], "-shared", "--options-file", "many.rsp"]
    same_step(folder, words)
    said = []
    for step in ("made.o", "real.o"):
        parts = ("recorder.o", "main.o", "@many.rsp", step)
        run(folder, "g++", *parts, "-o", "program")
        run(folder, "g++", "-shared", *parts, "-o", "many.so")
        run(folder, "g++", "main.o", "-Wl,--no-as-needed", "./many.so", "-o", "loads")
        for program in ("program", "loads"):
            lines = record(folder, program)
            said.append(re.sub(r"linked: \d+ bytes, hash \w+", "linked", lines))
    assert said[:2] == said[2:]
    for lines in said:
        assert lines.count("function of 1") == UNITS
