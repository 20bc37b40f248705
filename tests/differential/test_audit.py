"""`pylink audit` against runs: what it says of programs that a stand-in of the CUDA runtime starts.

Each planted fault is built, audited and started; then the build step that the audit names is done,
and both are right.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers import oracle, plugin_programs, registered_programs
from helpers.host_build import ARCH, Failed, HostBuild, Log

from pylink.audit.command import main

pytestmark = oracle.needs_oracle

SERIOUS = ("warning", "error")

FILL = """\
template <class T> __global__ void fill(T *p) { *p = T(VALUE); }
template <class T> ATTRIBUTE void launch(T *p) { fill<T><<<1, 1>>>(p); }
void NAME_host(int *p) { launch<int>(p); }
"""
VISIBLE = ("-device-entity-has-hidden-visibility=false", "-static-global-template-stub=false")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> HostBuild:
    """The objects of all programs here."""
    made = HostBuild(tmp_path_factory.mktemp("audit"))
    registered_programs.prepare(made)
    plugin_programs.prepare(made)
    made.run("ar", "rcs", "libcore_nv.a", "a.o")
    return made


def audit(
    build: HostBuild, words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """What the command says as JSON; its status has to follow from that."""
    here = Path.cwd()
    os.chdir(build.folder)
    try:
        status = main([*words, "-L", ".", "--json"])
    finally:
        os.chdir(here)
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    has_errors = any(finding["level"] == "error" for finding in said["findings"])
    assert status == said["status"] == int(has_errors)
    return said


def serious(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in said["findings"] if finding["level"] in SERIOUS]


def agree(said: dict[str, Any], log: Log, what: object) -> None:
    """No use is lost without a word, and no error is about uses that are found."""
    if log.lost_names or not log.ended:
        assert serious(said), (what, log.text)
    else:
        assert said["status"] == 0, (what, said["findings"])


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_random_programs(build: HostBuild, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    program = registered_programs.draw(seed)
    _, log = registered_programs.run(build, program)
    if log is not None:
        words = ["prog", *(["--plugin", "plugin.so"] if program.is_plugin else [])]
        agree(audit(build, words, capsys), log, program)


@pytest.mark.parametrize("seed", range(16))
def test_random_plugins(build: HostBuild, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    process = plugin_programs.draw(seed)
    log = plugin_programs.run(build, process)
    if log is not None:
        agree(audit(build, process.words, capsys), log, process)


@dataclass(frozen=True)
class Planted:
    """A fault: `plant` and `mend` build it and what the step makes of it."""

    rule: str
    step: str
    plant: Callable[[HostBuild], list[str]]
    mend: Callable[[HostBuild], list[str]]


def program(build: HostBuild, uses: str, objects: Sequence[str], *flags: str) -> list[str]:
    """A program that launches its own kernel, and uses modules of others."""
    registered_programs.write_uses(build, "use", list(uses))
    build.run(build.nvcc, f"-arch={ARCH}", "-dlink", "-L.", "main.o", *objects, "-o", "linked.o")
    host = ("g++", *flags, "linked.o", "main.o", "use.o", *objects, "-L.", "-Lruntime", "-lcudart")
    build.run(*host, "-Wl,-rpath,$ORIGIN", "-o", "prog")
    return ["prog"]


def loader(build: HostBuild, uses: str, libraries: Sequence[str]) -> list[str]:
    """A program of C++ that opens plugin.so."""
    registered_programs.write_uses(build, "loaded", list(uses))
    (build.folder / "loader.cc").write_text(registered_programs.LOADER)
    build.run("g++", "loader.cc", "loaded.o", "-Wl,--no-as-needed", *libraries, "-Lruntime",
              "-lcudart", "-ldl", "-o", "prog")  # fmt: skip
    return ["prog", "--plugin", "plugin.so"]


def plugin(build: HostBuild, device: Sequence[str], host: Sequence[str], *flags: str) -> None:
    registered_programs.write_uses(build, "use", [])
    words = (f"-arch={ARCH}", "-dlink", "-shared", "-Xcompiler", "-fPIC", "-L.")
    build.run(build.nvcc, *words, "plugin.o", *device, "-o", "linked.o")
    build.run("g++", "-shared", *flags, "linked.o", "plugin.o", "use.o", *host, "-L.", "-Lruntime",
              "-lcudart", "-o", "plugin.so")  # fmt: skip


def plugin_beside(build: HostBuild) -> list[str]:
    build.closed("libcore.so", ["a.o"])
    plugin(build, ["libcore_nv.a"], ["libcore.so"])
    return loader(build, "a", ["libcore.so"])


def plugin_borrowing(build: HostBuild) -> list[str]:
    build.closed("libcore.so", ["a.o"])
    plugin(build, ["libcore_nv.a", "libcore.so"], ["libcore.so"])
    return loader(build, "a", ["libcore.so"])


def plugin_beside_program(
    build: HostBuild, device: Sequence[str] = ("libcore_nv.a",), *host: str
) -> list[str]:
    """A program with a module of its own, which it exports, and which the plugin links as well."""
    plugin(build, device, host, "-Wl,--version-script=hiding.map")
    build.run(build.nvcc, f"-arch={ARCH}", "-dlink", "a.o", "-o", "linked.o")
    return loader(build, "a", ["a.o", "linked.o", "-rdynamic"])


def open_for_two(build: HostBuild) -> list[str]:
    """A program and its plugin that are linked with one open library."""
    build.library("libone.so", ["a.o"])
    return program_and_plugin(build)


def closed_for_two(build: HostBuild) -> list[str]:
    build.closed("libone.so", ["a.o"])
    return program_and_plugin(build)


def program_and_plugin(build: HostBuild) -> list[str]:
    plugin(build, ["libone.so"], ["libone.so"])
    words = (f"-arch={ARCH}", "-dlink", "-L.", "c.o", "libone.so")
    build.run(build.nvcc, *words, "-o", "linked.o")
    return loader(build, "ac", ["c.o", "linked.o", "libone.so"])


def closed_twice(build: HostBuild, *flags: str) -> list[str]:
    build.closed("libone.so", ["a.o", "b.o"])
    build.closed("libtwo.so", ["a.o", "c.o"], *flags)
    return program(build, "abc", ["libone.so", "libtwo.so"])


def archive_after(build: HostBuild) -> list[str]:
    build.closed("libone.so", ["a.o", "b.o"], "-Xlinker", "-Bsymbolic")
    return program(build, "ab", ["libone.so", "libcore_nv.a"])


def archive_before(build: HostBuild) -> list[str]:
    build.closed("libone.so", ["a.o", "b.o"], "-Xlinker", "-Bsymbolic")
    return program(build, "ab", ["libcore_nv.a", "libone.so"])


def open_plugin(build: HostBuild) -> list[str]:
    registered_programs.write_uses(build, "use", [])
    build.run("g++", "-shared", "plugin.o", "use.o", "-Lruntime", "-lcudart", "-o", "plugin.so")
    return loader(build, "", [])


def closed_plugin(build: HostBuild) -> list[str]:
    plugin(build, [], [])
    return loader(build, "", [])


def open_library(build: HostBuild, *device: str) -> list[str]:
    build.library("libone.so", ["a.o"])
    registered_programs.write_uses(build, "use", ["a"])
    build.run(build.nvcc, f"-arch={ARCH}", "-dlink", "-L.", "main.o", *device, "-o", "linked.o")
    build.run("g++", "linked.o", "main.o", "use.o", "libone.so", "-Lruntime", "-lcudart",
              "-Wl,--unresolved-symbols=ignore-all", "-o", "prog")  # fmt: skip
    return ["prog"]


def final_library(build: HostBuild, *libraries: str) -> list[str]:
    build.library("libone.so", ["a.o"])
    words = (f"-arch={ARCH}", "-dlink", "-shared", "-Xcompiler", "-fPIC")
    build.run(build.nvcc, *words, "a.o", "-o", "linked.o")
    build.run("g++", "-shared", "linked.o", *libraries, "-o", "libfinal.so")
    registered_programs.write_uses(build, "use", [])
    build.run(build.nvcc, f"-arch={ARCH}", "-dlink", "main.o", "-o", "linked.o")
    build.run("g++", "linked.o", "main.o", "use.o", "-Wl,--no-as-needed", "libfinal.so",
              "-Wl,--unresolved-symbols=ignore-all", "-L.", "-Lruntime", "-lcudart",
              "-o", "prog")  # fmt: skip
    return ["prog"]


def second_final(build: HostBuild, *, omitted: bool = False) -> list[str]:
    """A final library of libraries that another one was linked with, too."""
    for name in "abc":
        build.library(f"libopen{name}.so", [f"{name}.o"])
    registered_programs.make_library(build, "libfinal.so", "final", "abc")
    if omitted:
        files = ["libfinal.so", "libopena.so", "libopenb.so", "libopenc.so"]
        return program(build, "abc", files, "-Wl,--no-as-needed")
    registered_programs.make_library(build, "libmore.so", "final", "bc")
    build.run("gcc", "-shared", "-Wl,--no-as-needed", "-L.", "-lmore", "-lfinal", "-o", "liball.so")
    lines = ["liball.so", "libmore.so", "libfinal.so", *(f"libopen{name}.so" for name in "abc")]
    build.run(build.nvcc, f"-arch={ARCH}", "-dlink", "main.o", "-o", "linked.o")
    registered_programs.write_uses(build, "use", list("abc"))
    # One module of the second image is bound to it alone.
    build.run("g++", "-Wl,--no-as-needed", "linked.o", "main.o", "use.o", *lines, "-L.",
              "-Lruntime", "-lcudart", "-o", "prog")  # fmt: skip
    return ["prog"]


def twice(build: HostBuild, *objects: str) -> list[str]:
    build.library("libone.so", ["a.o", "b.o"])
    return program(build, "ab", ["libone.so", *objects], "-Wl,--no-as-needed")


def exported(build: HostBuild, *flags: str) -> list[str]:
    for name, value in (("one", "1"), ("two", "2")):
        text = FILL.replace("VALUE", value).replace("NAME", name).replace("ATTRIBUTE", "")
        (build.folder / f"{name}.cu").write_text(text)
        build.compile(f"{name}.cu", "-Xcompiler", "-fvisibility=default", *flags)
        build.library(f"lib{name}.so", [f"{name}.o"])
    return ["libone.so", "--plugin-global", "libtwo.so"]


PLANTED = {
    "plugin beside a library": Planted(
        "audit-incomplete",
        "name 'libcore.so' in the device link of 'plugin.so'",
        plugin_beside,
        plugin_borrowing,
    ),
    "plugin beside its program": Planted(
        "audit-incomplete",
        "link the objects of its modules into",
        plugin_beside_program,
        lambda build: plugin_beside_program(build, ["a.o"], "a.o"),
    ),
    "open library of two": Planted(
        "audit-incomplete", "link 'libone.so' for the device", open_for_two, closed_for_two
    ),
    "two closed libraries": Planted(
        "audit-incomplete",
        "-Bsymbolic",
        closed_twice,
        lambda build: closed_twice(build, "-Xlinker", "-Bsymbolic"),
    ),
    "archive after a library": Planted(
        "audit-incomplete", "name its archive before the libraries", archive_after, archive_before
    ),
    "open plugin": Planted(
        "audit-unanswered", "without -nodlink", open_plugin, closed_plugin
    ),
    "open library": Planted(
        "audit-unanswered",
        "in the device link of 'prog'",
        open_library,
        lambda build: open_library(build, "libone.so"),
    ),
    "code that is not loaded": Planted(
        "audit-no-code",
        "--no-as-needed",
        final_library,
        lambda build: final_library(build, "-Wl,--no-as-needed", "libone.so"),
    ),
    "object beside its library": Planted(
        "audit-late-copy", "into one file only", lambda build: twice(build, "a.o"), twice
    ),
}  # fmt: skip


def start(build: HostBuild) -> Log:
    try:
        return build.start("prog")
    except Failed as failed:
        return Log(f"use ?: none, {failed}")


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_and_the_steps_that_help(
    build: HostBuild, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = PLANTED[name]
    said = audit(build, planted.plant(build), capsys)
    log = start(build)
    assert log.lost_names or not log.ended, log.text
    steps = [
        step
        for finding in serious(said)
        if finding["rule"] == planted.rule
        for step in finding["steps"]
    ]
    assert any(planted.step in step for step in steps), said["findings"]
    said = audit(build, planted.mend(build), capsys)
    log = start(build)
    assert not serious(said)
    assert log.ended, log.text
    assert not log.lost_names, log.text


def test_a_second_final_library_is_not_needed(
    build: HostBuild, capsys: pytest.CaptureFixture[str]
) -> None:
    said = audit(build, second_final(build), capsys)
    agree(said, start(build), said["findings"])
    steps = [step for finding in said["findings"] for step in finding["steps"]]
    assert any("omit the device link of" in step for step in steps), said["findings"]
    said = audit(build, second_final(build, omitted=True), capsys)
    assert not serious(said)
    assert not start(build).lost_names


def test_kernels_that_two_files_export(
    build: HostBuild, capsys: pytest.CaptureFixture[str]
) -> None:
    said = audit(build, exported(build, *VISIBLE), capsys)
    found = [finding for finding in said["findings"] if finding["rule"] == "audit-kernel"]
    assert [finding["symbol"] for finding in found] == ["_Z4fillIiEvPT_"]
    assert "-device-entity-has-hidden-visibility=true" in found[0]["steps"][0]
    assert not serious(audit(build, exported(build), capsys))


def test_code_for_a_gpu(build: HostBuild, capsys: pytest.CaptureFixture[str]) -> None:
    build.compile("a.cu", "-gencode=arch=compute_80,code=sm_80", target="a80.o")
    for option, objects, is_good in (
        ("sm_90", ["a.o"], True),
        ("10.0", ["a.o"], False),
        ("86", ["a80.o"], True),
        ("75", ["a80.o"], False),
    ):
        build.closed("libone.so", objects)
        findings = audit(build, ["libone.so", "--gpu", option], capsys)["findings"]
        rules = {finding["rule"] for finding in findings}
        assert ("audit-gpu" not in rules) == is_good, (option, objects)


@pytest.mark.parametrize(
    "flags",
    [
        ("-O0",),
        ("-O0", "-rdc=true"),
        ("-O0", *VISIBLE),
        ("-O0", "-Xcompiler", "-ffunction-sections"),
    ],
    ids=str,
)
def test_functions_that_launch_kernels(
    build: HostBuild, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Weak and visible ones are found in objects and archives; static or hidden ones are right."""
    for attribute, is_found in (
        ("", True),
        ("static", False),
        ('__attribute__((visibility("hidden")))', False),
    ):
        text = FILL.replace("VALUE", "1").replace("NAME", "one").replace("ATTRIBUTE", attribute)
        (build.folder / "one.cu").write_text(text)
        build.compile("one.cu", *flags)
        (build.folder / "libone.a").unlink(missing_ok=True)
        build.run("ar", "rcs", "libone.a", "one.o")
        for file in ("one.o", "libone.a"):
            found = audit(build, [file], capsys)["findings"]
            symbols = [(finding["symbol"], finding["kernel"]) for finding in found]
            assert symbols == [("_Z6launchIiEvPT_", "_Z4fillIiEvPT_")] * is_found, attribute


def test_variables_of_several_images(build: HostBuild, capsys: pytest.CaptureFixture[str]) -> None:
    build.write(v_cu="__device__ int level;\n__global__ void v_kernel() { level = 1; }\n"
                "void v_host() { v_kernel<<<1, 1>>>(); }\n")  # fmt: skip
    build.compile("v.cu", "-rdc=true")
    for name in ("one", "two"):
        build.closed(f"lib{name}.so", ["v.o"], "-Xlinker", "-Bsymbolic")
    said = audit(build, ["libone.so", "--plugin", "libtwo.so"], capsys)
    found = [finding for finding in said["findings"] if finding["rule"] == "audit-variable"]
    assert [finding["symbol"] for finding in found] == ["level"]
