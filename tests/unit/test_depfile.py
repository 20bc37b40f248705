"""--depfile: the rule as make and Ninja read it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.archive_builder import thin, write
from helpers.cubin_builder import one_kernel
from helpers.shared_builder import SharedLibrary

import pylink
from pylink.command.cli import main
from pylink.outputs.depfile import files_of, format_rule

NAMES = ["a.cubin", "with blank.cubin", "dollar$.cubin", "hash#.cubin", "c:olon.cubin"]
# Ninja knows no way to write these.
TAB, BAR = "tab\t.cubin", "bar|.cubin"


def linked(place: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        (place / name).write_bytes(one_kernel(f"kernel{number}").build())
    (place / "options").write_text("-arch=sm_80")
    depfile = place / "out.d"
    inputs = [str(place / name) for name in names]
    outputs = ["-o", str(place / "out.cubin"), "--depfile", str(depfile)]
    status = main(["-optf", str(place / "options"), *inputs, *outputs])
    assert status == 0
    return depfile


def test_every_file_read_is_named(tmp_path: Path) -> None:
    text = linked(tmp_path, ["a.cubin", "b.cubin"]).read_text()
    first = text.splitlines()[0]
    assert first == (
        f"{tmp_path}/out.cubin: {tmp_path}/a.cubin {tmp_path}/b.cubin {tmp_path}/options"
    )


def test_archives_that_share_members_name_them_once() -> None:
    """Each archive holds the next twice, sixteen deep."""
    members = {f"{n}.a": [f"{n + 1}.a", f"{n + 1}.a", "f"] for n in range(16)}
    assert files_of(["0.a", "b"], members) == [*(f"{n}.a" for n in range(17)), "f", "b"]


def test_inputs_that_are_no_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel("a").build())
    pylink.link(
        [("b.cubin", one_kernel("b").build()), tmp_path / "a.cubin"],
        arch="sm_80",
        output=tmp_path / "o",
        depfile=str(tmp_path / "d"),
    )
    first = (tmp_path / "d").read_text().splitlines()[0]
    assert first == f"{tmp_path}/o: {tmp_path}/a.cubin"


@pytest.mark.parametrize("closed", [(), ("_id",)])
def test_shared_libraries_are_named(tmp_path: Path, closed: tuple[str, ...]) -> None:
    (tmp_path / "main.cubin").write_bytes(one_kernel("main").build())
    modules = [("_id", one_kernel("part").build())]
    built = SharedLibrary(modules=modules, kernels=["part"], closed=closed).build()
    (tmp_path / "libx.so").write_bytes(built)
    words = ["-arch=sm_80", str(tmp_path / "main.cubin"), f"-L{tmp_path}", "-lx"]
    assert main([*words, "-o", str(tmp_path / "o"), "--depfile", str(tmp_path / "d")]) == 0
    files = (tmp_path / "d").read_text().splitlines()[0].replace(f"{tmp_path}/", "")
    assert files == "o: main.cubin libx.so"


@pytest.mark.skipif(shutil.which("ar") is None, reason="ar is not installed")
@pytest.mark.parametrize("form", ["r", "rT"])
def test_libraries_and_what_thin_ones_refer_to(tmp_path: Path, form: str) -> None:
    for name in ("main", "part"):
        (tmp_path / f"{name}.cubin").write_bytes(one_kernel(name).build())
    subprocess.run(["ar", form, "libx.a", "part.cubin"], cwd=tmp_path, check=True)
    words = ["-arch=sm_80", str(tmp_path / "main.cubin"), f"-L{tmp_path}", "-lx"]
    assert main([*words, "-o", str(tmp_path / "o"), "--depfile", str(tmp_path / "d")]) == 0
    files = (tmp_path / "d").read_text().splitlines()[0].replace(f"{tmp_path}/", "")
    assert files == "o: main.cubin libx.a" + (" part.cubin" if "T" in form else "")


def test_thin_archives_in_thin_archives(tmp_path: Path) -> None:
    inside = {"in/2.a": thin(["f.cubin"]), "in/f.cubin": one_kernel("f").build()}
    write(tmp_path, {"1.a": thin(["in/2.a"]), **inside})
    words = ["-arch=sm_80", "--whole-archive", str(tmp_path / "1.a"), "-o", str(tmp_path / "o")]
    assert main([*words, "--depfile", str(tmp_path / "d")]) == 0
    files = (tmp_path / "d").read_text().splitlines()[0].replace(f"{tmp_path}/", "")
    assert files == "o: 1.a in/2.a in/f.cubin"


def test_names_that_need_escapes() -> None:
    assert format_rule("o", [*NAMES, TAB, BAR]).splitlines()[0] == (
        "o: a.cubin with\\ blank.cubin dollar$$.cubin hash\\#.cubin c\\:olon.cubin "
        "tab\\\t.cubin bar\\|.cubin"
    )
    assert format_rule("o", ["a", "a"]) == "o: a\n\na:\n"
    for name in ("a\nb", "a\rb", "a;b"):
        for words in ((name, ["a"]), ("o", ["a", name])):
            with pytest.raises(ValueError, match="cannot name"):
                format_rule(*words)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_reads_it(tmp_path: Path) -> None:
    depfile = linked(tmp_path, [*NAMES, TAB])
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"include {depfile}\n{tmp_path}/out.cubin:\n\t@echo stale $?\n")

    def make() -> str:
        command = ["make", "-f", str(makefile), f"{tmp_path}/out.cubin"]
        # Without what a make that runs the tests hands down.
        outside = {name: value for name, value in os.environ.items() if "MAKE" not in name}
        done = subprocess.run(command, env=outside, capture_output=True, text=True, check=True)
        return done.stdout

    assert "is up to date" in make()
    for name in (*NAMES, TAB):
        os.utime(tmp_path / name, (4e9, 4e9))
        assert name.replace("\t", " ") in make()
        os.utime(tmp_path / name, (1, 1))
    assert "is up to date" in make()
    (tmp_path / "with blank.cubin").unlink()  # as after a rename: no rule needed
    assert make().startswith("stale")


@pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is not installed")
def test_ninja_reads_it(tmp_path: Path) -> None:
    depfile = linked(tmp_path, NAMES)
    (tmp_path / "saved.d").write_bytes(depfile.read_bytes())
    (tmp_path / "build.ninja").write_text(
        f"rule link\n  command = cp saved.d out.d && touch $out\n  depfile = out.d\n"
        f"build {tmp_path}/out.cubin: link saved.d\n"
    )

    def ninja() -> str:
        command = ["ninja", "-d", "explain"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    ninja()
    assert "no work to do" in ninja()
    (tmp_path / "dollar$.cubin").write_bytes(b"changed")
    assert "dollar$.cubin" in ninja()


def test_a_failed_link_leaves_the_old_rule(tmp_path: Path) -> None:
    (tmp_path / "bad.cubin").write_bytes(b"\x7fELF not really")
    (tmp_path / "out.d").write_text("kept")
    words = ["-arch=sm_80", str(tmp_path / "bad.cubin"), "-o", str(tmp_path / "o")]
    assert main([*words, "--depfile", str(tmp_path / "out.d")]) == 1
    assert (tmp_path / "out.d").read_text() == "kept"


def test_a_place_that_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    words = ["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", str(tmp_path / "o")]
    assert main([*words, "--depfile", str(tmp_path / "missing" / "d")]) == 1
    said = capfd.readouterr().err
    assert f"Could not open output file '{tmp_path}/missing/d'" in said
    assert "No such file or directory" in said
