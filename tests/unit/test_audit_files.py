"""`pylink audit`: what it reads, what it says, and what it makes of files that are not right."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import struct
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import fatbin_builder
from helpers.cubin_builder import one_kernel
from helpers.registering import Code, library, program

from pylink.audit.command import main
from pylink.audit.targets import sm_number

Audit = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Audit:
    """Runs the command in the folder of the test: status, and what it says as JSON."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, dict[str, Any]]:
        status = main([*words, "--json"])
        said = capsys.readouterr()
        return status, json.loads(said.out) if said.out else {"error": said.err}

    return run


def rules(said: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["rule"], Path(finding["file"]).name) for finding in said["findings"]]


def test_a_program_that_owns_its_modules(tmp_path: Path, audit: Audit) -> None:
    library(tmp_path, "libone.so", Code(modules=["_b"]))
    program(tmp_path, "prog", Code(modules=["_a"], linked=["_a", "_b"]), "-lone")
    status, said = audit("prog")
    assert (status, said["findings"]) == (0, [])
    assert [(Path(file["path"]).name, file["state"]) for file in said["files"]] == [
        ("prog", "closed"),
        ("libone.so", "open"),
    ]
    assert "libc.so.6" in said["not_found"]


def test_a_terminal_has_its_own_width(
    tmp_path: Path, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for diagnostics of a link, the window counts, not COLUMNS of the environment."""
    for name, module in (("libone.so", "_b"), ("libtwo.so", "_c")):
        library(tmp_path, name, Code(modules=["_a", module], linked=["_a", module]))
    program(tmp_path, "prog", Code(), "-lone", "-ltwo")
    assert audit("prog")[0] == 1
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 60, 0, 0))
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["prog"]) == 1
        lines = os.read(ours, 1 << 16).decode().splitlines()
    os.close(ours)
    assert "libtwo.so: error: the image is never registered, as module" in lines
    assert max(map(len, lines)) < 60


def test_the_search_order_of_the_loader(tmp_path: Path, audit: Audit) -> None:
    """The first library of two takes the call of both; the program's own names are not exported."""
    for name, module in (("libone.so", "_b"), ("libtwo.so", "_c")):
        library(tmp_path, name, Code(modules=["_a", module], linked=["_a", module]))
    for order, lost in ((["-lone", "-ltwo"], "libtwo.so"), (["-ltwo", "-lone"], "libone.so")):
        program(tmp_path, "prog", Code(), *order)
        status, said = audit("prog")
        assert status == 1
        # The one that is first gets a call too many, after its image is complete or before.
        assert ("audit-incomplete", lost) in rules(said)
    program(tmp_path, "prog", Code(modules=["_a"], linked=["_a"]))
    status, said = audit("prog", "--plugin", "libone.so")
    assert status == 0


@pytest.mark.parametrize("is_global", [False, True])
def test_what_a_plugin_sees(tmp_path: Path, audit: Audit, is_global: bool) -> None:
    """RTLD_LOCAL keeps the first plugin's functions from the second."""
    for name, module in (("one.so", "_b"), ("two.so", "_c")):
        library(tmp_path, name, Code(modules=["_a", module], linked=["_a", module]))
    option = "--plugin-global" if is_global else "--plugin"
    status, said = audit(option, "one.so", "--plugin", "two.so")
    assert status == int(is_global)
    if is_global:
        assert ("audit-incomplete", "two.so") in rules(said)


def test_names_of_libraries_are_those_of_the_loader(tmp_path: Path, audit: Audit) -> None:
    """RPATH and RUNPATH with $ORIGIN, -L, SONAMEs of what is loaded already."""
    below = tmp_path / "below"
    below.mkdir()
    library(below, "libone.so", Code(modules=["_a"], linked=["_a"]), "-Wl,-soname,libone.so.1")
    (below / "libone.so.1").symlink_to("libone.so")
    for flag in ("-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"):
        rpath = "-Wl,-rpath,$ORIGIN/below"
        program(tmp_path, "prog", Code(), "-Lbelow", "-lone", flag, rpath)
        assert [Path(file["path"]).name for file in audit("prog")[1]["files"]] == ["libone.so.1"]
    program(tmp_path, "prog", Code(), "-Lbelow", "-lone")
    assert "libone.so.1" in audit("prog")[1]["not_found"]
    assert audit("prog", "-L", "below")[1]["files"]
    files = audit("prog", "--plugin", "below/libone.so")[1]["files"]
    assert len(files) == 1


def test_what_is_not_looked_at(tmp_path: Path, audit: Audit) -> None:
    """Only directories that were named are read, also through links; --system lifts that."""
    here, outside = tmp_path / "here", tmp_path / "outside"
    here.mkdir()
    outside.mkdir()
    library(outside, "libone.so", Code(modules=["_a"], linked=["_a"]))
    program(here, "prog", Code(), f"-L{outside}", "-lone", f"-Wl,-rpath,{outside}")
    _, said = audit("here/prog")
    assert said["files"] == []
    assert said["not_looked_at"] == [str(outside)]
    assert len(audit("here/prog", "--system")[1]["files"]) == 1
    (here / "libone.so").symlink_to(outside / "libone.so")
    _, said = audit("here/prog")
    assert said["files"] == []
    assert str(outside / "libone.so") in said["not_looked_at"]


def test_special_files_are_never_opened(tmp_path: Path, audit: Audit) -> None:
    (tmp_path / "here").mkdir()
    library(tmp_path, "libone.so", Code())
    program(tmp_path / "here", "prog", Code(), f"-L{tmp_path}", "-lone")
    os.mkfifo(tmp_path / "here" / "libone.so")
    status, said = audit("here/prog")
    assert status == 0
    assert "libone.so" in said["not_found"]
    status, said = audit("here/libone.so")
    assert status == 2
    assert "libone.so" in said["error"]


def test_files_of_other_machines(tmp_path: Path, audit: Audit) -> None:
    made = library(tmp_path, "libone.so", Code(modules=["_a"], linked=["_a"]))
    program(tmp_path, "prog", Code(), "-lone")
    image = bytearray(made.read_bytes())
    image[18:20] = (183 if image[18] == 62 else 62).to_bytes(2, "little")
    made.write_bytes(image)
    status, said = audit("prog")
    assert status == 0
    assert rules(said) == [("audit-skipped", "libone.so")]
    image[4] = 1
    made.write_bytes(image)
    status, said = audit("libone.so")
    assert status == 2
    assert "32-bit" in said["error"]


@pytest.mark.parametrize(
    "contents", [b"", b"\x7fELF", b"text", b"\x7fELF\x02\x01" + bytes(10), b"!<arch>\n????"]
)
def test_files_of_other_kinds(tmp_path: Path, audit: Audit, contents: bytes) -> None:
    (tmp_path / "other").write_bytes(contents)
    status, said = audit("other")
    assert status == 2
    assert said["error"].startswith("pylink audit: other: ")
    assert said["error"].count("\n") == 1


def test_without_section_headers(tmp_path: Path, audit: Audit) -> None:
    """Exported symbols still tell, and the rest is said to be unknown."""
    made = library(tmp_path, "one.so", Code(modules=["_a"]))
    image = bytearray(made.read_bytes())
    image[40:48] = bytes(8)
    image[60:64] = bytes(4)
    made.write_bytes(image)
    status, said = audit("one.so")
    assert status == 1
    assert set(rules(said)) == {("audit-unanswered", "one.so"), ("audit-no-sections", "one.so")}


def test_stripped_files(tmp_path: Path, audit: Audit) -> None:
    library(tmp_path, "one.so", Code(modules=["_a"]), "-s")
    assert audit("one.so")[0] == 1
    library(tmp_path, "one.so", Code(modules=["_a"], linked=["_a"]), "-s")
    assert audit("one.so")[0] == 0


def test_ids_that_are_not_true(tmp_path: Path, audit: Audit) -> None:
    library(tmp_path, "one.so", Code(modules=["_a"], linked=["_a"], extra_ids=["_b", "_b", "def"]))
    status, said = audit("one.so")
    assert status == 0
    assert rules(said) == [("audit-damaged", "one.so")]
    library(tmp_path, "one.so", Code(modules=["_a"], linked=["_a"], extra_ids=["def _b"]))
    status, said = audit("one.so")
    assert status == 1
    assert rules(said) == [("audit-waiting", "one.so")]


def test_ids_and_fat_binaries_of_modules(tmp_path: Path, audit: Audit) -> None:
    """Each module has one of both, also where several have no id but that of a device link."""
    container = fatbin_builder.container(fatbin_builder.entry(one_kernel().build(), 90))
    for count in (1, 2, 3):
        code = Code(["_a", "_b"], ["_a", "_b"], relocatable=[container] * count)
        library(tmp_path, "one.so", code)
        status, said = audit("one.so")
        assert status == 0
        assert (rules(said) == [("audit-ids", "one.so")]) is (count != 2)
        if count != 2:
            assert f"{count} fat binaries of relocatable code, but 2 module ids" in str(said)


def test_relocatable_code_beside_images(tmp_path: Path, audit: Audit) -> None:
    """It is worth a note from 1 MiB on, and of no use only for architectures of the images."""
    small = one_kernel().build()
    image = fatbin_builder.container(fatbin_builder.entry(small, 90))
    for size, arch, kind, is_found in (
        (1 << 20, 90, 2, True),
        ((1 << 20) - 8, 90, 2, False),
        (1 << 20, 80, 2, False),
        (1 << 20, 90, 1, False),
    ):
        entry = fatbin_builder.entry(bytes(size), arch, kind=kind)
        code = Code(["_a"], ["_a"], [image], relocatable=[fatbin_builder.container(entry)])
        library(tmp_path, "one.so", code)
        status, said = audit("one.so")
        assert status == 0
        found = [finding for finding in said["findings"] if finding["rule"] == "audit-relocatable"]
        assert bool(found) is is_found, (size, arch, kind)
        if found:
            assert f"{size} bytes of relocatable code" in found[0]["message"]
            assert "pylink prune --linked" in found[0]["steps"][0]


def test_thousands_of_modules(tmp_path: Path, audit: Audit) -> None:
    names = [f"_m{number}" for number in range(4000)]
    library(tmp_path, "libone.so", Code(modules=names[:2000]))
    program(tmp_path, "prog", Code(modules=names[2000:], linked=names), "-lone")
    assert audit("prog")[0] == 0
    library(tmp_path, "libone.so", Code(modules=names[1:2000], linked=names[1:2000]))
    status, said = audit("prog")
    assert status == 1
    assert ("audit-waiting", "prog") in rules(said)


def test_names_are_escaped_in_every_form(
    tmp_path: Path, audit: Audit, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\x1b[2J\n\udcff.so"
    made = library(tmp_path, "plain.so", Code(modules=["_a"]))
    made.rename(tmp_path / name)
    status, said = audit(name)
    assert status == 1
    assert "\\xff" in said["findings"][0]["file"]
    assert main([name, "--sarif-output", "out.sarif"]) == 1
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "a\\x1b[2J\\n\\xff.so" in text
    sarif = json.loads((tmp_path / "out.sarif").read_bytes())
    result = sarif["runs"][0]["results"][0]
    assert (result["ruleId"], result["level"]) == ("EC840", "error")
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.endswith("/a%1B%5B2J%0A%FF.so")


def test_which_gpus_code_is_for(tmp_path: Path, audit: Audit) -> None:
    """Machine code runs within its major number, PTX on what comes later, suffixes on less."""
    cubin = one_kernel().build()
    for kind, arch, flags, good, bad in (
        (2, 80, 0, [80, 86], [75, 90]),
        (1, 80, 0, [80, 90, 120], [75]),
        (2, 90, 0x100000, [90], [80, 100]),
        (1, 90, 0x100000, [90], [100]),
        (2, 100, 0x200000, [100, 103], [90, 120]),
        (1, 100, 0x200000, [100, 103], [120]),
    ):
        payload = cubin if kind == 2 else b".version 9.0\n\0"
        entry = fatbin_builder.entry(payload, arch, kind=kind, flags=flags | 0x11)
        library(tmp_path, "one.so", Code(images=[fatbin_builder.container(entry)]))
        for gpu in (*good, *bad):
            found = rules(audit("one.so", "--gpu", str(gpu))[1])
            assert (("audit-gpu", "one.so") in found) == (gpu in bad), (kind, arch, flags, gpu)


@pytest.mark.parametrize(
    ("text", "number"), [("90", 90), ("sm_103", 103), ("9.0", 90), ("12.1", 121)]
)
def test_numbers_of_gpus(text: str, number: int) -> None:
    assert sm_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "9", "sm_", "9.", "x", "9.0.0", "²0", "100000", "0.0", "99999.9"]
)
def test_words_that_are_no_gpu(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        sm_number(text)


def test_severities_obey_options(tmp_path: Path, audit: Audit) -> None:
    library(tmp_path, "one.so", Code(modules=["_a"], linked=["_a"], extra_ids=["_b"]))
    assert audit("one.so")[0] == 0
    assert audit("one.so", "-Werror")[0] == 1
    assert audit("one.so", "-Werror", "--diag-suppress", "audit-damaged")[1]["findings"] == []
    assert audit("one.so", "-Werror", "--diag-suppress", "856")[0] == 0
    assert audit("one.so", "--diag-suppress", "none-such")[0] == 2


def test_words_that_make_no_audit(tmp_path: Path, audit: Audit) -> None:
    library(tmp_path, "one.so", Code())
    assert audit()[0] == 2
    assert audit("one.so", "one.so", "--plugin", "one.so")[0] == 2
    assert audit("absent")[0] == 2
    assert audit("one.so", "--sarif-output", "no/such/folder.sarif")[0] == 2


def test_damaged_files_are_no_surprise(
    tmp_path: Path, audit: Audit, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any bytes end in a status and a message."""
    entry = fatbin_builder.entry(one_kernel().build(), 90)
    code = Code(["_a", "_b"], ["_a", "_b"], [fatbin_builder.container(entry)], ["one"])
    library(tmp_path, "libone.so", code)
    made = program(tmp_path, "prog", Code(["_c"], ["_c"]), "-lone")
    chance = random.Random(5)
    for file in (made, tmp_path / "libone.so"):
        whole = file.read_bytes()
        places = [
            *range(64),
            *range(64, 64 + 56 * 12),
            *(chance.randrange(len(whole)) for _ in range(100)),
            *range(len(whole) - 64 * 30, len(whole)),
        ]
        for _ in range(150):
            damaged = bytearray(whole)
            for place in chance.sample(places, chance.randint(1, 4)):
                damaged[place] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
            if chance.random() < 0.2:
                del damaged[chance.randrange(len(damaged)) :]
            file.write_bytes(damaged)
            assert main(["prog", "--plugin", "libone.so", "--gpu", "90"]) in (0, 1, 2)
        file.write_bytes(whole)
    capsys.readouterr()
