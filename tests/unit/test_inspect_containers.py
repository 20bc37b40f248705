"""`pylink inspect` of host objects, archives, executables and fat binaries: every cubin in them."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest
from helpers import archive_builder, fatbin_builder, lto_sources, oracle
from helpers.cubin_builder import one_kernel
from helpers.section_names import with_numbers_in_first_header

from pylink.command.inspection import main
from pylink.facts.records import SHDR
from pylink.inspect.embedded import InMemory, find_device_code, sections_of

ONE, TWO = one_kernel("one").build(), one_kernel("two").build()


def host(*cubins: tuple[bytes, int]) -> bytes:
    """A host object with a fat binary of these cubins."""
    entries = [fatbin_builder.entry(data, arch) for data, arch in cubins]
    return fatbin_builder.host_object([("__nv_relfatbin", fatbin_builder.container(*entries))])


FILES = {
    "a.o": host((ONE, 80), (TWO, 90)),
    "b.fatbin": fatbin_builder.container(fatbin_builder.entry(ONE, 80)),
    "lib.a": archive_builder.gnu([("x.o", host((ONE, 80))), ("y.cubin", TWO), ("readme", b"text")]),
    "deep.a": archive_builder.gnu([("lib.a", archive_builder.gnu([("y.cubin", TWO)]))]),
    "plain.cubin": ONE,
}
SHOWN = {
    "a.o": ["a.o (sm_80)", "a.o (sm_90)"],
    "b.fatbin": ["b.fatbin (sm_80)"],
    "lib.a": ["lib.a:x.o (sm_80)", "lib.a:y.cubin"],
    "deep.a": ["deep.a:lib.a:y.cubin"],
    "plain.cubin": ["plain.cubin"],
}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    return status, *capfd.readouterr()


@pytest.mark.parametrize("name", FILES)
def test_every_cubin_is_shown_under_its_own_name(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capfd, "--headers", name)
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if line in SHOWN[name]] == SHOWN[name]
    assert out.count("ELF header") == len(SHOWN[name])
    status, out, err = run(capfd, "--json", "--symbols", name)
    made = json.loads(out)
    documents = made if isinstance(made, list) else [made]
    assert [document["file"] for document in documents] == SHOWN[name]


def test_what_is_in_a_file_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "--list", "a.o", "lib.a")[1].splitlines() == [
        f"a.o: cubin for sm_80, {len(ONE)} bytes",
        f"a.o: cubin for sm_90, {len(TWO)} bytes",
        f"lib.a:x.o: cubin for sm_80, {len(ONE)} bytes",
        f"lib.a:y.cubin: cubin for sm_80, {len(TWO)} bytes",
        "'lib.a:readme' is a text; no device code is found in it",
    ]
    assert run(capfd, "--list", "--arch", "sm_90", "a.o")[1].count("\n") == 1


def test_one_cubin_of_a_container_is_compared(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "--diff", "b.fatbin", "plain.cubin")[0] == 0
    assert run(capfd, "--diff", "--arch=sm_80", "a.o", "plain.cubin")[0] == 0
    status, out, err = run(capfd, "--diff", "a.o", "plain.cubin")
    assert (status, out) == (2, "")
    assert err == (
        "pylink inspect: a.o: holds 2 cubins; choose one with --arch, or name an object\n"
    )


@pytest.mark.parametrize("name", [name for name in FILES if name != "plain.cubin"])
def test_damage_is_one_message(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Every cut and a changed byte anywhere: never a traceback, and nothing shown beside it."""
    data = FILES[name]
    for at in range(0, len(data), max(1, len(data) // 150)):
        for broken in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
            Path("broken").write_bytes(broken)
            status, out, err = run(capfd, "--headers", "broken")
            assert status in (0, 2)
            assert err.count("\n") == (1 if status else 0)
            assert (out == "") == bool(status)


def test_a_thin_archive_that_names_itself_ends(capfd: pytest.CaptureFixture[str]) -> None:
    Path("thin.a").write_bytes(archive_builder.thin(["thin.a"]))
    status, out, err = run(capfd, "thin.a")
    assert (status, out) == (2, "")
    assert "archives in each other" in err


@oracle.needs_oracle
def test_what_nvcc_makes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = lto_sources.write_host_object(tmp_path, "alone", "sm_80")
    status, out, _ = run(capfd, "--symbols", made)
    assert (status, "_Z2k6Pi" in out) == (0, True)
    program = tmp_path / "program"
    flags = ["-no-pie", "-nostdlib", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-e,0"]
    subprocess.run(["gcc", *flags, "-o", program, tmp_path / made], check=True)
    status, out, _ = run(capfd, "--symbols", "program")
    assert (status, "_Z2k6Pi" in out) == (0, True)


def test_device_code_is_found_in_any_section(capfd: pytest.CaptureFixture[str]) -> None:
    """Containers with zeros between them, in sections of other names, and a cubin by itself."""
    first = fatbin_builder.container(fatbin_builder.entry(ONE, 80))
    second = fatbin_builder.container(fatbin_builder.entry(TWO, 90, mode="zstd"))
    Path("library").write_bytes(
        fatbin_builder.host_object(
            [
                (".rodata", first[:8] + b"no container, but a constant" * 3),
                (".nv_fatbin", first + bytes(200) + second),
                (".data", b"x" * 24 + second + bytes(8) + first),
                (".bytes", b"y" * 8 + TWO),
            ]
        )
    )
    assert run(capfd, "--list", "library")[1].splitlines() == [
        f"library: cubin for sm_80, {len(ONE)} bytes",
        f"library: cubin for sm_90, {len(TWO)} bytes",
        f"library: cubin for sm_90, {len(TWO)} bytes",
        f"library: cubin for sm_80, {len(ONE)} bytes",
        f"library: cubin for sm_80, {len(TWO)} bytes",
    ]
    Path("two.fatbin").write_bytes(first + bytes(1000) + second)
    assert run(capfd, "--list", "two.fatbin")[1].count("\n") == 2


def test_a_cubin_with_its_counts_in_the_first_section_header_is_found(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """There they are if a cubin has 65,280 sections or more."""
    Path("library").write_bytes(
        fatbin_builder.host_object([(".bytes", b"y" * 8 + with_numbers_in_first_header(TWO))])
    )
    assert run(capfd, "--list", "library") == (
        0, f"library: cubin for sm_80, {len(TWO)} bytes\n", "",
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 1000, 1 << 20, 1 << 26, (1 << 64) - 1])
def test_a_cubin_with_a_wrong_number_of_sections_is_not_found(count: int) -> None:
    data = b"y" * 8 + with_numbers_in_first_header(TWO, count=count)
    assert list(find_device_code(InMemory(data + bytes(100)), [])) == []


def test_a_cubin_without_section_headers_is_not_found() -> None:
    data = bytearray(with_numbers_in_first_header(TWO))
    data[40:48] = bytes(8)
    assert list(find_device_code(InMemory(b"y" * 8 + bytes(data)), [])) == []


def test_a_section_name_without_an_end_is_empty() -> None:
    data = bytearray(fatbin_builder.host_object([(".data", b"x" * 8)]))
    assert [row.name for row in sections_of(InMemory(bytes(data)))] == [".data", ".shstrtab"]
    place_of_size = len(data) - SHDR.size + 32  # sh_size of .shstrtab, the last section
    (size,) = struct.unpack_from("<Q", data, place_of_size)
    struct.pack_into("<Q", data, place_of_size, size - 1)  # without the zero after the last name
    assert [row.name for row in sections_of(InMemory(bytes(data)))] == [".data", ""]


@pytest.mark.parametrize("gap", [0, 1, 4081, 4088, 4089, 4095, 4096, 20_475, 1_398_000, 3_000_001])
def test_device_code_is_found_wherever_pieces_of_a_file_end(gap: int) -> None:
    """Marks begin at each of 24 places around the end of a piece that is read at once."""
    fat = fatbin_builder.container(fatbin_builder.entry(ONE, 80))
    cubin = TWO
    for shift in range(24):
        before = bytes(gap + shift)
        data = b"x" + before + fat + before + cubin + before + fat + fat + b"x"
        found = [(each.start, each.end) for each in find_device_code(InMemory(data), [])]
        starts = [1 + len(before)]
        starts.append(starts[0] + len(fat) + len(before))
        starts.append(starts[1] + len(cubin) + len(before))
        starts.append(starts[2] + len(fat))
        sizes = (len(fat), len(cubin), len(fat), len(fat))
        wanted = [(start, start + size) for start, size in zip(starts, sizes, strict=True)]
        assert found == wanted, (gap, shift)
