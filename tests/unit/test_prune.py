"""`pylink prune`: what goes is gone and all else is what it was, or nothing is written."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from helpers import archive_builder, oracle
from helpers.cubin_builder import EHDR, SHDR, Cubin
from helpers.fatbin_builder import PTX, container, entry, host_object
from helpers.host_build import HostBuild
from helpers.sized import linked, wheel

from pylink.inputs.archiveformat import read_archive
from pylink.prune import rewriting
from pylink.prune.command import main
from pylink.prune.entries import FatbinEntry, read_container
from pylink.prune.errors import NotPruned
from pylink.prune.hostelf import HostElf
from pylink.prune.verification import verify
from pylink.size import measure

TEXT = b".version 8.0\n.target sm_80\n.address_size 64\n"
UNITS = {
    "a_cu": "extern __device__ int f(int);\n"
    "__global__ void ka(int *p) { *p = f(*p); }\nint main() { ka<<<1, 1>>>(nullptr); }\n",
    "b_cu": "__device__ int f(int x) { return x * 3; }\n"
    "__global__ void kb(int *p) { *p += f(*p); }\n"
    "void launch() { kb<<<1, 1>>>(nullptr); }\n",
}

needs_host_compiler = pytest.mark.skipif(
    not oracle.REQUIRED and not shutil.which("g++"), reason="needs g++: apt install g++"
)


def cubin(*kernels: str) -> bytes:
    made = Cubin()
    for kernel in kernels:
        made.function(kernel, kernel=True, code=bytes(range(256)) * 20)
    return made.build()


A80, A90 = entry(cubin("a"), 80), entry(cubin("a"), 90)
A90A = entry(cubin("a"), 90, flags=0x100011, mode="zstd")
PTX90 = entry(TEXT, 90, kind=PTX, mode="lz4")
FAT = container(A80, A90, A90A, PTX90)


def with_references(*containers: bytes, gap: int = 0) -> bytes:
    """An object with containers in a section, a symbol for each and a pointer to each."""
    section = b""
    starts = []
    for data in containers:
        starts.append(len(section))
        section += data + bytes(gap)
    symbols = bytes(24) + struct.pack("<IBBHQQ", 0, 3, 0, 1, 0, 0)
    for start in starts:
        symbols += struct.pack("<IBBHQQ", 1, 0, 0, 1, start, 0)
    relocations = b"".join(
        struct.pack("<QQq", 8 * n, 1 << 32 | 1, start) for n, start in enumerate(starts)
    )
    names = b"\0.nv_fatbin\0.data\0.symtab\0.strtab\0.rela.data\0.odd\0"
    bodies = [
        (b".nv_fatbin", 1, 2, section, 0, 0, 8, 0),
        (b".data", 1, 3, bytes(8 * len(starts)), 0, 0, 32, 0),
        (b".symtab", 2, 0, symbols, 4, 2 + len(starts), 8, 24),
        (b".strtab", 3, 0, b"\0fatbinData\0" + names, 0, 0, 1, 0),
        (b".rela.data", 4, 0, relocations, 3, 2, 8, 24),
        (b".odd", 1, 0, b"odd", 0, 0, 1, 0),
    ]
    body, table = b"", [bytes(64)]
    for name, kind, flags, data, link, info, alignment, width in bodies:
        body += bytes(-len(body) % max(8, alignment))
        place = 11 + 1 + names.index(b"\0" + name + b"\0") + 1
        table.append(
            SHDR.pack(
                place, kind, flags, 0, 64 + len(body), len(data), link, info, alignment, width
            )
        )
        body += data
    body += bytes(-len(body) % 8)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    header = EHDR.pack(ident, 1, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(table), 4)
    return header + body + b"".join(table)


def prune(path: Path, *words: str, code: int = 0) -> bytes:
    made = path.with_name("made")
    made.unlink(missing_ok=True)
    assert main([*words, "-o", str(made), str(path)]) == code
    if code:
        assert not made.exists()
        return b""
    return made.read_bytes()


def entries_of(data: bytes) -> list[list[FatbinEntry]]:
    return [
        read_container(data, found.start, found.end, "") for found in rewriting.containers_of(data)
    ]


def targets(data: bytes) -> list[list[str]]:
    return [[made.target for made in entries] for entries in entries_of(data)]


def test_targets_of_an_object(tmp_path: Path) -> None:
    path = tmp_path / "a.o"
    path.write_bytes(with_references(FAT, container(A80), FAT, gap=24))
    made = prune(path, "--arch", "sm_90,compute_90")
    assert targets(made) == [["sm_90", "compute_90"], [], ["sm_90", "compute_90"]]
    sizes = measure([str(tmp_path / "made")])
    assert not sizes.unreadable
    assert len(made) < path.stat().st_size
    # Each pointer and each symbol is where its container is now.
    elf = HostElf(made, "")
    starts = [found.start - elf.sections[1].offset for found in rewriting.containers_of(made)]
    assert [symbol.value for symbol in elf.symbols(elf.sections[3]) if symbol.name] == starts
    addends = [row[2] for row in struct.iter_unpack("<QQq", elf.contents(elf.sections[5]))]
    assert addends == starts
    assert elf.contents(elf.sections[6]) == b"odd"


def test_an_archive_keeps_its_index(tmp_path: Path) -> None:
    members = [("one.o", with_references(FAT)), ("a member of a long name.o", b"text"),
               ("two.o", with_references(FAT))]  # fmt: skip
    names = b"first\0second\0"
    plain = archive_builder.gnu(members, index=bytes(12) + names)
    places = plain.index(b"one.o/"), plain.index(b"two.o/")
    index = struct.pack(">III", 2, *places) + names
    path = tmp_path / "lib.a"
    path.write_bytes(archive_builder.gnu(members, index=index))
    made = prune(path, "--arch", "sm_80")
    places = struct.unpack_from(">II", made, 72)
    assert [made[place : place + 6] for place in places] == [b"one.o/", b"two.o/"]
    assert targets(made[made.index(b"two.o/") + 60 :]) == [["sm_80"]]


def test_a_fat_binary_in_other_modes(tmp_path: Path) -> None:
    path = tmp_path / "x.fatbin"
    path.write_bytes(FAT)
    payloads = [made.payload("").rstrip(b"\0") for made in entries_of(FAT)[0]]
    sizes = {}
    for mode in ("none", "speed", "default", "size"):
        made = prune(path, "--compress-mode", mode)
        found = entries_of(made)[0]
        assert [each.payload("").rstrip(b"\0") for each in found] == payloads
        codec = {"none": 0, "speed": 0x2000}.get(mode, 0x8000)
        assert {each.flags & 0xA000 for each in found[:3]} == {codec}
        sizes[mode] = len(made)
    assert sizes["size"] <= sizes["default"] < sizes["none"]


def test_a_finished_library_keeps_its_length(tmp_path: Path) -> None:
    data = bytearray(host_object([(".text", b"host"), (".nv_fatbin", FAT + bytes(8) + FAT)]))
    data[16:18] = struct.pack("<H", 3)
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    prune(path, "--arch", "sm_90", code=2)
    made = prune(path, "--arch", "sm_90", "--experimental")
    assert len(made) == len(data)
    assert targets(made) == [["sm_90"], ["sm_90"]]
    starts = [found.start for found in rewriting.containers_of(bytes(data))]
    assert [found.start for found in rewriting.containers_of(made)] == starts


def test_rules_have_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = entry(TEXT, 80, kind=PTX)
    linked = [bytearray(cubin("a")) for _ in range(2)]
    for data in linked:
        data[16:18] = struct.pack("<H", 2)
    fat = container(*(entry(bytes(data), sm) for data, sm in zip(linked, (80, 90), strict=True)),
                    older, PTX90)  # fmt: skip
    path = tmp_path / "a.o"
    path.write_bytes(with_references(fat))
    assert targets(prune(path, "--compress-mode", "size"))[0][2:] == ["compute_80", "compute_90"]
    capsys.readouterr()
    made = prune(path, "--drop", "unreached-ptx")
    assert targets(made) == [["sm_80", "sm_90", "compute_90"]]
    condition = "CUDA_FORCE_PTX_JIT=1 is not set"
    assert capsys.readouterr().err.splitlines() == [
        f"pylink prune: note: {path}: unreached-ptx: class A, right if: {condition}"
    ]
    prune(path, "--drop", "twins")
    assert capsys.readouterr().err == f"pylink prune: note: {path}: twins: nothing to do\n"
    prune(path, "--drop", "everything", code=2)
    assert "not a rule: 'everything'" in capsys.readouterr().err


def linked_at(sm: int, *, marked: bool = False) -> bytes:
    mark = struct.pack("<BBH", 1, 0x35, 0)  # EIATTR_SW2861232_WAR
    return entry(linked(sm, records=mark if marked else b""), sm)


def test_every_twin_goes_that_a_rule_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each pair of targets is a line of its own; the cubin that all of them are as stays."""
    path = tmp_path / "a.o"
    fats = [
        container(linked_at(80), linked_at(86), linked_at(89)),
        container(linked_at(86, marked=True), linked_at(89)),
        container(linked_at(100), linked_at(103), linked_at(90)),
    ]
    path.write_bytes(with_references(*fats))
    made = prune(path, "--drop", "twins")
    assert targets(made) == [["sm_80"], ["sm_86"], ["sm_100", "sm_90"]]
    said = capsys.readouterr().err
    for sm in (86, 89, 103):
        condition = f"one run on a GPU of sm_{sm}"
        assert f"pylink prune: note: {path}: twins: class B, right if: {condition}" in said


def test_rules_count_on_what_is_left_alone(tmp_path: Path) -> None:
    """What stays after --arch decides what a GPU runs without its own code, or its PTX."""
    older, newer = entry(TEXT, 80, kind=PTX), entry(TEXT, 90, kind=PTX)
    path = tmp_path / "a.o"
    path.write_bytes(with_references(container(linked_at(86), linked_at(89))))
    assert targets(prune(path, "--drop", "twins")) == [["sm_86"]]
    assert targets(prune(path, "--arch", "sm_89", "--drop", "twins")) == [["sm_89"]]
    path.write_bytes(with_references(container(linked_at(80), older, newer)))
    assert targets(prune(path, "--drop", "unreached-ptx")) == [["sm_80", "compute_90"]]
    made = prune(path, "--arch", "compute_80,compute_90", "--drop", "unreached-ptx")
    assert targets(made) == [["compute_80", "compute_90"]]


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.o"
    path.write_bytes(with_references(FAT))
    prune(path, "--arch", "sm_75", code=2)
    assert "it has no code for sm_75; its targets are compute_90, sm_80" in capsys.readouterr().err
    before = path.read_bytes()
    assert main(["--arch", "sm_80", "-o", str(path), str(path)]) == 2
    assert "would overwrite an input" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main([str(path), "--in-place"]) == 2
    # A pointer into a container would point to something else.
    data = bytearray(with_references(FAT))
    elf = HostElf(bytes(data), "")
    data[elf.sections[5].offset + 16] = 16
    path.write_bytes(data)
    prune(path, "--arch", "sm_80", code=2)
    assert "within a container" in capsys.readouterr().err
    data = bytearray(with_references(FAT))
    struct.pack_into("<Q", data, elf.header[6] + 2 * 64 + 48, 1 << 40)
    path.write_bytes(data)
    prune(path, "--arch", "sm_80", code=2)
    assert "is aligned to more than" in capsys.readouterr().err
    path.write_bytes(with_references(FAT)[:-200])
    prune(path, "--arch", "sm_80", code=2)
    path.write_bytes(archive_builder.thin(["a.o"]))
    prune(path, "--arch", "sm_80", code=2)
    path.write_bytes(archive_builder.bsd([("a.o", with_references(FAT))], index=True))
    prune(path, "--arch", "sm_80", code=2)
    assert "its index is of a BSD" in capsys.readouterr().err


def test_files_that_hold_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An archive of a BSD without an index is pruned; what to do about others is said."""
    data = with_references(FAT)
    (tmp_path / "one.o").write_bytes(data)
    path = tmp_path / "held"
    path.write_bytes(archive_builder.thin(["one.o"]))
    prune(path, "--arch", "sm_80", code=2)
    assert "a thin archive contains no code; prune its members" in capsys.readouterr().err
    prune(wheel(path, {"one.o": data}), "--arch", "sm_80", code=2)
    assert "zip files are not pruned; unpack it, prune the files" in capsys.readouterr().err
    members = [("one.o", data), ("a member of a long name.o", data)]
    path.write_bytes(archive_builder.bsd(members))
    made = prune(path, "--arch", "sm_80")
    found = [(entry.name, made[entry.offset : entry.offset + entry.size])
             for entry in read_archive(made, 0, len(made))]  # fmt: skip
    assert [name for name, _ in found] == [name for name, _ in members]
    assert [targets(data) for _, data in found] == [[["sm_80"]]] * 2


def test_in_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / name for name in ("a.o", "b.o")]
    for path in paths:
        path.write_bytes(with_references(FAT))
    assert main(["--arch", "sm_80", "--in-place", *map(str, paths)]) == 0
    assert [targets(path.read_bytes()) for path in paths] == [[["sm_80"]]] * 2
    assert "3 entries dropped, 1 compared" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["code", "data", "addend", "symbol", "identity"])
def test_a_wrong_result_is_noticed(place: str) -> None:
    old = with_references(FAT)
    new = bytearray(old)
    elf = HostElf(old, "")
    start = elf.sections[1].offset
    new[{
        "code": start + 16 + 64 + 200,
        "data": elf.sections[6].offset,
        "addend": elf.sections[5].offset + 16,
        "symbol": elf.sections[3].offset + 48 + 8,
        "identity": start + 16 + 28,
    }[place]] ^= 8  # fmt: skip
    assert verify(old, old, frozenset(), "") == 4
    with pytest.raises(NotPruned):
        verify(old, bytes(new), frozenset(), "")


@oracle.needs_oracle
@needs_host_compiler
def test_copies_of_linked_code_go_and_the_program_registers_the_same(tmp_path: Path) -> None:
    build = HostBuild(tmp_path)
    build.write(**UNITS)
    objects = [build.compile(source, "-rdc=true") for source in ("a.cu", "b.cu")]
    nvcc = oracle.toolchain().tool("nvcc")
    build.run(nvcc, "-arch=sm_90", "-dlink", *objects, "-o", "linked.o")
    build.run("ar", "rcs", "plain.a", "b.o")
    logs, fatbins = [], []
    for name in ("plain", "pruned"):
        if name == "pruned":
            linked = str(tmp_path / "linked.o")
            paths = [str(tmp_path / file) for file in ("a.o", "plain.a")]
            assert main(["--linked", linked, "--in-place", *paths]) == 0
            for path in paths:
                kinds = {leaf.kind for leaf in measure([path]).leaves}
                assert "relocatable cubin" not in kinds
                assert "relocatable PTX" in kinds
        build.run("g++", "a.o", "linked.o", "plain.a", "-Lruntime", "-lcudart", "-o", name)
        logs.append(build.start(name))
        build.run("objcopy", "-O", "binary", "-j", ".nv_fatbin", name, f"{name}.bin")
        fatbins.append((tmp_path / f"{name}.bin").read_bytes())
    assert logs[0].images == logs[1].images == 1
    assert logs[0].text == logs[1].text.replace("pruned", "plain")
    assert fatbins[0] == fatbins[1]


@oracle.needs_oracle
@needs_host_compiler
def test_nvlink_makes_the_same_of_what_stays(tmp_path: Path) -> None:
    build = HostBuild(tmp_path)
    build.write(**UNITS)
    codes = [f"-gencode=arch=compute_{sm},code=sm_{sm}" for sm in (80, 90)]
    nvcc = oracle.toolchain().tool("nvcc")
    build.run(nvcc, *codes, "-rdc=true", "-c", "a.cu", "b.cu")
    build.run("ar", "rcs", "plain.a", "a.o", "b.o")
    images = []
    for words in ([], ["--arch", "sm_90"], ["--compress-mode", "size"]):
        if words:
            shutil.copy(tmp_path / "plain.a", tmp_path / "copy.a")
            assert main([*words, "--in-place", str(tmp_path / "copy.a")]) == 0
            (tmp_path / "copy.a").replace(tmp_path / "used.a")
        else:
            shutil.copy(tmp_path / "plain.a", tmp_path / "used.a")
        done = oracle.run_nvlink(["-arch=sm_90", "used.a", "-o", "out"], tmp_path, "out")
        assert done.code == 0, done.stderr
        images.append(done.image)
        (tmp_path / "out").unlink()
    assert images[0] is not None
    assert images[0] == images[1] == images[2]
    listed = subprocess.run(
        ["nm", "-s", "used.a"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "main in a.o" in listed.stdout


def test_damaged_objects_are_refused_or_right(tmp_path: Path) -> None:
    """Whatever bytes change: a result that is written was compared, and nothing else happens."""
    whole = with_references(FAT, container(A80))
    generator = random.Random(7)
    path = tmp_path / "a.o"
    statuses = Counter[int]()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(generator.randint(1, 3)):
            low = 0 if generator.random() < 0.5 else len(data) - 600
            data[generator.randrange(low, len(data))] = generator.choice([0, 1, 0x7F, 0xFF])
        path.write_bytes(data)
        made = tmp_path / "made"
        statuses[main(["--arch", "sm_90", "-o", str(made), str(path)])] += 1
    assert statuses.keys() <= {0, 2}
    assert statuses[2] > 5
