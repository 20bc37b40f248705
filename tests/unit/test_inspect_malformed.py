"""`pylink inspect` of files that are no cubins, or broken ones: one message, status 2."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from helpers.cubin_builder import with_wide_counts

from pylink.command.inspection import main
from pylink.inspect.image import Image

GOLDEN = Path(__file__).parent.parent / "golden"
CUBIN = (GOLDEN / "75" / "guard" / "exec.nvlink.cubin").read_bytes()
SECTION_HEADERS = 0x900
INFO = SECTION_HEADERS + 64 * 7
NOTE = SECTION_HEADERS + 64 * 5


def changed(at: int, form: str, value: int) -> bytes:
    data = bytearray(CUBIN)
    struct.pack_into(form, data, at, value)
    return bytes(data)


CASES = {
    "empty": (b"", "0 bytes are too few for an ELF header"),
    "32-bit": (changed(4, "B", 1), "not a 64-bit little-endian ELF file"),
    "big-endian": (changed(5, "B", 2), "not a 64-bit little-endian ELF file"),
    "x86": (changed(18, "<H", 62), "there is no cubin in it"),
    "truncated": (
        CUBIN[:0x910],
        "section headers: 0x40 bytes at 0x900 run past the end of the file, 0x910",
    ),
    "far-section-headers": (
        changed(40, "<Q", 2**64 - 8),
        "section headers: 0x40 bytes at 0xfffffffffffffff8 run past the end of the file, 0xd28",
    ),
    "many-sections": (
        changed(60, "<H", 0xFFFF),
        "65535 section headers: 0x3fffc0 bytes at 0x900 run past the end of the file, 0xd28",
    ),
    "no-names": (changed(62, "<H", 77), "e_shstrndx is 77, and there are 14 sections"),
    "name": (changed(INFO, "<I", 0xFFFF), "section 7: sh_name 0xffff is not a name"),
    "far-section": (
        changed(INFO + 24, "<Q", 2**63),
        "section 7 .nv.info: 0x24 bytes at 0x8000000000000000 run past the end of the file, 0xd28",
    ),
    "huge-section": (
        changed(INFO + 32, "<Q", 2**63),
        "section 7 .nv.info: 0x8000000000000000 bytes at 0x568 run past the end of the file, 0xd28",
    ),
    "record-format": (changed(0x568, "B", 9), ".nv.info+0x0: no record format 9"),
    "record-size": (
        changed(0x56A, "<H", 0x100),
        ".nv.info+0x0: record of 0x100 bytes does not fit",
    ),
    "record-end": (changed(0x56A, "<H", 6), ".nv.info+0x0: record of 0x6 bytes does not fit"),
    "note": (changed(0x404, "<I", 0x4000), ".note.nv.tkinfo+0x0: the note runs past the section"),
    "symbol-name": (changed(0x2B8 + 24, "<I", 0x5000), ".strtab: no string at 0x5000"),
    "table-size": (
        changed(SECTION_HEADERS + 64 * 11 + 32, "<Q", 15),
        ".rel.debug_frame: 0xf bytes are not a multiple of 16",
    ),
}


@pytest.mark.parametrize(("data", "message"), CASES.values(), ids=CASES)
def test_one_message_names_file_and_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, message: str
) -> None:
    file, good = tmp_path / "x.cubin", tmp_path / "good.cubin"
    file.write_bytes(data)
    good.write_bytes(CUBIN)
    for argv in ([str(file)], ["--json", str(file)], ["--diff", str(good), str(file)]):
        assert main(argv) == 2
        shown = capsys.readouterr()
        assert shown.err == f"pylink inspect: {file}: {message}\n"
        assert shown.out == ""


def test_a_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.cubin").write_bytes(b"hello " * 20)
    for option in ("--list", "--json"):
        assert main([option, str(tmp_path / "x.cubin")]) == 2
        shown = capsys.readouterr()
        assert shown.err.endswith("/x.cubin' is a text; no device code is found in it\n")
        assert shown.out == ""


def test_numbers_of_sections_too_large_for_the_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = with_wide_counts(CUBIN)
    assert Image(image).sections[1:] == Image(CUBIN).sections[1:]
    table = struct.unpack_from("<Q", image, 40)[0]
    for at, message in ((table + 32, "65535 section headers"), (table + 40, "e_shstrndx is 65535")):
        file = tmp_path / "x.cubin"
        file.write_bytes(image[:at] + b"\xff\xff" + image[at + 2 :])
        assert main([str(file)]) == 2
        assert message in capsys.readouterr().err


def test_what_is_not_asked_for_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.cubin"
    file.write_bytes(changed(0x568, "B", 9))
    assert main(["--symbols", str(file)]) == 0
    assert "_Z5scalePfPKfi" in capsys.readouterr().out


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == (
        f"pylink inspect: {tmp_path / 'none'}: No such file or directory\n"
    )
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"pylink inspect: {tmp_path}: Is a directory\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: FILE"),
        (["--diff", "a"], "--diff compares two files"),
        (["--diff", "--symbols", "a", "b"], "--diff compares everything"),
        (["--ignore-tool-note", "a"], "--ignore-... needs --diff"),
    ],
)
def test_wrong_use(capsys: pytest.CaptureFixture[str], argv: list[str], message: str) -> None:
    assert main(argv) == 2
    assert message in capsys.readouterr().err


def test_names_cannot_command_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.cubin"
    file.write_bytes(CUBIN.replace(b"_Z5scalePfPKfi", b"_Z5\x1b[2J\nPKfi\xff\xc2"))
    assert main([str(file)]) == 0
    assert "_Z5\\x1b[2J\\nPKfi\\xff\\xc2" in capsys.readouterr().out


def test_random_damage_never_ends_in_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(11)
    sources = [path.read_bytes() for path in sorted(GOLDEN.glob("*/guard/*.cubin"))]
    file, good = tmp_path / "x.cubin", tmp_path / "good.cubin"
    seen = set()
    for _ in range(300):
        source = rng.choice(sources)
        data = bytearray(source)
        headers = int.from_bytes(data[40:48], "little")
        start = rng.choice((0, headers, 0))
        for _ in range(rng.choice((1, 2, 20))):
            data[rng.randrange(start, len(data))] = rng.choice((0, 1, 127, 255, rng.randrange(256)))
        file.write_bytes(data)
        good.write_bytes(source)
        status = main([str(file)])
        assert (status, bool(capsys.readouterr().err)) in {(0, False), (2, True)}
        seen.add(status)
        status = main(["--diff", str(good), str(file)])
        assert (status == 2) == bool(capsys.readouterr().err)
        seen.add(status)
    assert seen == {0, 1, 2}
