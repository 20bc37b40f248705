"""What could go: each rule says what was planted, no more, and what the tools then make."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest
import zstandard
from helpers.cubin_builder import Cubin
from helpers.fatbin_builder import PTX, container, entry
from helpers.sized import library

from pylink._native import zstdframes
from pylink.command.sizes import main
from pylink.facts.picknumbers import Codec
from pylink.inputs.payload import load_codec
from pylink.inspect.embedded import lacks_registration
from pylink.size import Sizes, hostnames, measure, rows
from pylink.size import entries as entries_module
from pylink.size.chips import is_covered
from pylink.size.experiments import Experiments
from pylink.size.model import Reduction
from pylink.size.reductions import reductions
from pylink.size.sources import MemorySource

TEXT = b".version 8.0\n.target sm_80\n.address_size 64\n"


def cubin(*kernels: str, device: str = "", linked: bool = False) -> bytes:
    made = Cubin()
    for kernel in kernels:
        made.function(kernel, kernel=True, code=bytes(range(256)) * 20)
    if device:
        made.function(device)
    data = bytearray(made.build())
    if linked:
        data[16:18] = struct.pack("<H", 2)
    return bytes(data)


def found(tmp_path: Path, data: bytes, *, recompress: bool = False) -> dict[str, Reduction]:
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    sizes: Sizes = measure([str(path)], recompress=recompress)
    assert not sizes.unreadable
    return {line.rule: line for line in reductions(sizes)}


def linked_library(elf_type: int = 3, kernels: tuple[str, ...] = ("a", "b")) -> bytes:
    return library(
        [
            (".nv_fatbin", container(entry(cubin(*kernels, linked=True), 80))),
            (
                "__nv_relfatbin",
                container(
                    entry(cubin("a", device="dropped"), 80),
                    entry(cubin("a"), 90),
                    entry(cubin("a"), 80, flags=0x100011),
                    entry(TEXT, 80, kind=PTX),
                )
                + container(entry(cubin("b"), 80)),
            ),
        ],
        elf_type=elf_type,
    )


def test_relocatable_code_that_is_linked(tmp_path: Path) -> None:
    line = found(tmp_path, linked_library())["linked-copies"]
    # Not those of another target or suffix, and not the PTX.
    assert line.entries == 2
    assert line.letter == "B"
    wanted = entry(cubin("a", device="dropped"), 80), entry(cubin("b"), 80)
    assert line.installed == sum(map(len, wanted))


def test_a_unit_that_was_not_linked_stays(tmp_path: Path) -> None:
    line = found(tmp_path, linked_library(kernels=("a",)))["linked-copies"]
    assert line.entries == 1


def test_objects_keep_their_relocatable_code(tmp_path: Path) -> None:
    assert "linked-copies" not in found(tmp_path, linked_library(elf_type=1))


def test_open_libraries_keep_their_relocatable_code(tmp_path: Path) -> None:
    names = b"\0__cudaRegisterLinkedBinary_1_a_cu\0"
    for section, is_open in ((0, True), (1, False)):
        symbol = bytes(24) + struct.pack("<IBBHQQ", 1, 0x10, 0, section, 0, 0)
        data = library([(".dynsym", symbol), (".dynstr", names)])
        assert lacks_registration(MemorySource(data)) is is_open


@pytest.mark.parametrize("mode", ["none", "lz4"])
def test_compression_is_measured(mode: str, tmp_path: Path) -> None:
    payload = cubin("a") + b""
    rule = {"none": "stored-cubins", "lz4": "lz4-cubins"}[mode]
    shipped = entry(payload, 80, mode=mode)
    lines = found(tmp_path, library([(".nv_fatbin", container(shipped))]), recompress=True)
    made = zstandard.ZstdCompressor(level=5).compress(payload)
    saved = len(shipped) - 64 - (len(made) + -len(made) % 8)
    if saved > 0:
        assert lines[rule].installed == saved
    else:
        assert rule not in lines


def test_code_that_does_not_compress_stays_as_it_is(tmp_path: Path) -> None:
    made = Cubin()
    made.function("noise", code=random.Random(3).randbytes(1 << 16))
    payload = made.build()
    stored = found(
        tmp_path, library([(".nv_fatbin", container(entry(payload, 80)))]), recompress=True
    )
    assert stored.get("stored-cubins") is None or stored["stored-cubins"].installed < 2000


def test_equal_cubins_are_compressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of threads, each of them counts."""
    entries = [entry(cubin("a"), 80), entry(cubin("b"), 90), *[entry(cubin("a"), 80)] * 6]
    path = tmp_path / "lib.so"
    path.write_bytes(library([(".nv_fatbin", container(*entries))]))
    said = set()
    for threads in ("1", "2", "4"):
        monkeypatch.setattr(entries_module, "count_cores", lambda threads=threads: int(threads))
        sizes = measure([str(path)], recompress=True)
        (line,) = [line for line in reductions(sizes) if line.rule == "stored-cubins"]
        assert (line.entries, sizes.ledger.contents_compressed()) == (8, 2)
        said.add((line.installed, line.download))
    assert len(said) == 1


@pytest.mark.parametrize("level", [1, 5, 19])
def test_frames_are_those_of_the_package(level: int) -> None:
    assert load_codec(Codec.ZSTD_FRAME, zstdframes.open_library)
    generator = random.Random(level)
    payloads = [
        b"", b"a", bytes(100_000), generator.randbytes(5000), cubin("a"),
        b"".join(generator.choices([b"one ", b"two ", b"three "], k=300_000)),
    ]  # fmt: skip
    for payload in payloads * 2:  # memory is used again
        made = zstandard.ZstdCompressor(level=level).compress(payload)
        assert zstdframes.frame_of(payload, level) == made


def test_templates_of_many_instances_are_named_and_nothing_is_advised(tmp_path: Path) -> None:
    names = [f"_Z4manyILi{number}EEvv" for number in range(16)]
    others = [f"_Z3fewILi{number}EEvv" for number in range(15)]
    data = library([(".nv_fatbin", container(entry(cubin(*names, *others, linked=True), 80)))])
    line = found(tmp_path, data)["many-instances"]
    assert line.title == "many<>: 16 instances"
    assert (line.letter, line.entries) == ("C", 16)
    assert main([str(tmp_path / "lib.so")]) == 0


def named_library(
    kernels: tuple[str, ...], *sections: tuple[str, bytes], elf_type: int = 3
) -> bytes:
    """A library with these kernels, and sections of its host code."""
    code = container(entry(cubin(*kernels, device="helper", linked=True), 80))
    return library([*sections, (".nv_fatbin", code)], elf_type=elf_type)


def unnamed(tmp_path: Path, data: bytes, *, thorough: bool = True) -> Reduction | None:
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    sizes = measure([str(path)], experiments=Experiments(thorough))
    lines = [line for line in reductions(sizes) if line.rule == "unnamed-kernels"]
    return lines[0] if lines else None


def test_kernels_that_host_code_does_not_name(tmp_path: Path) -> None:
    """Names may share the tail of a string; symbols, code of the device and parts do not count."""
    kernels = ("first", "second", "third", "fourth_one", "fifth")
    strings = b"first\0_Zsecond\0thirdly\0a fourth_one\0"
    tables = b"\0third\0fifth\0"
    data = named_library(kernels, (".rodata", strings), (".dynstr", tables), (".strtab", tables))
    line = unnamed(tmp_path, data)
    assert line is not None
    assert line.title == "2 kernels that host code does not name"
    assert (line.letter, line.estimated, line.download) == ("C", True, None)
    functions = {
        row.keys[0]: row.installed for row in rows(measure([str(tmp_path)]), ("function",))
    }
    assert line.installed == functions["third"] + functions["fifth"]
    assert unnamed(tmp_path, data, thorough=False) is None


def test_nothing_is_said_where_all_are_named_or_nothing_is_registered(tmp_path: Path) -> None:
    kernels = ("first", "second")
    named = (".data.rel.ro", b"second\0first\0")
    assert unnamed(tmp_path, named_library(kernels, named)) is None
    # What is linked later is registered by another file.
    assert unnamed(tmp_path, named_library(kernels, elf_type=1)) is None
    line = unnamed(tmp_path, named_library(("only",)))
    assert line is not None
    assert line.title == "1 kernel that host code does not name"


@pytest.mark.parametrize("seed", range(8))
def test_names_are_found_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Beside a search for each name with its zero, in windows that cut names."""
    monkeypatch.setattr(hostnames, "WINDOW", 64)
    choose = random.Random(seed)
    names = sorted({"".join(choose.choices("ab_Z1", k=choose.randint(1, 12))) for _ in range(20)})
    host = b""
    for _ in range(60):
        host += choose.choice([b"\0", b"a", b" ", b"\xff"]) + choose.choice(names).encode()
        host += choose.choice([b"", b"\0", b"\0x"])
    missing = [name for name in names if name.encode() + b"\0" not in host]
    line = unnamed(tmp_path, named_library(tuple(names), (".rodata", host + b"!")))
    assert (line is None) == (not missing)
    if line is not None:
        assert line.title.split()[0] == str(len(missing))


def test_mercury_halves_are_never_offered(tmp_path: Path) -> None:
    """Whatever is said of a cubin for sm_100, its Mercury sections stay in it."""
    data = (Path(__file__).parents[1] / "golden/100/calls/exec.nvlink.cubin").read_bytes()
    path = tmp_path / "lib.so"
    path.write_bytes(library([(".nv_fatbin", container(entry(data, 100)))]))
    sizes = measure([str(path)], recompress=True)
    parts = {row.keys[0]: row.unpacked for row in rows(sizes, ("part",))}
    assert parts["mercury code"] > 0
    assert parts["mercury rest"] > 0
    told = [line for line in reductions(sizes) if line.rule != "stored-cubins"]
    assert not [line for line in told if line.letter != "C"]
    assert not any("ercury" in f"{line.title} {line.how}" for line in told)


def test_unreached_ptx(tmp_path: Path) -> None:
    entries = [entry(cubin("a", linked=True), sm) for sm in (75, 80, 90)]
    texts = [entry(TEXT + b"//" * sm, sm, kind=PTX) for sm in (75, 80, 90, 100)]
    data = library([(".nv_fatbin", container(*entries, *texts))])
    line = found(tmp_path, data)["unreached-ptx"]
    # 75 and 80 to 89 and 90 have code; the highest PTX stays for later GPUs.
    assert line.installed == sum(map(len, texts[:3]))
    assert line.letter == "A"
    del entries[1]
    data = library([(".nv_fatbin", container(*entries, *texts))])
    assert found(tmp_path, data)["unreached-ptx"].entries == 2


@pytest.mark.parametrize(
    ("gpu", "cubins", "is_arm", "covered"),
    [
        (89, {80}, False, True),
        (89, {86}, False, True),
        (86, {89}, False, False),
        (90, {80}, False, False),
        (89, {87}, False, False),
        (87, {80}, True, False),
        (87, {87}, True, True),
        (110, {100}, True, False),
        (121, {120}, False, True),
    ],
)
def test_gpus_that_run_a_cubin(gpu: int, cubins: set[int], is_arm: bool, covered: bool) -> None:
    assert is_covered(gpu, cubins, is_arm=is_arm) is covered


def test_ptx_with_a_suffix_stays(tmp_path: Path) -> None:
    data = library(
        [
            (
                ".nv_fatbin",
                container(
                    entry(cubin("a", linked=True), 90),
                    entry(TEXT, 90, kind=PTX, flags=0x100011),
                    entry(TEXT, 100, kind=PTX),
                ),
            )
        ]
    )
    assert "unreached-ptx" not in found(tmp_path, data)


def test_the_screen_and_json_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(linked_library())
    assert main([str(path)]) == 0
    assert "relocatable code that is linked" in capsys.readouterr().out
    assert main([str(path), "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["could_go"]
    assert {line["letter"] for line in lines} <= {"A", "B"}
    assert all(line["condition"] and line["how"] for line in lines)
