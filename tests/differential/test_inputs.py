"""Fat binaries and host objects: pylink's links equal nvlink's on the same files."""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from differential.check import as_pylink
from helpers import oracle, programs
from helpers.compare import compare
from helpers.fatbin_builder import PTX, SEGMENT, container, entry, host_object
from helpers.keywords import keywords
from helpers.words import without_notes

import pylink

pytestmark = oracle.needs_oracle

FAMILIES = ("75", "80", "90a", "100", "120")
MODES = ("none", "zstd", "lz4")
# Programs with templates, statics, shared memory, printf, -lineinfo and -G among them.
SEEDS = (9, 14, 17, 27, 30, 34)
UNFLAGGED = 27  # compiled without options, which PTX would not carry


@cache
def program(seed: int) -> programs.Program:
    return programs.generate(seed)


def cubins(seed: int, arch: str) -> list[bytes]:
    return [
        oracle.compile(module.source, arch, module.flags, name=module.name)
        for module in program(seed).modules
    ]


def sm(arch: str) -> int:
    return int(arch.rstrip("af"))


def host(fatbin: bytes, kernels: Sequence[str] | None = None, machine: int = 62) -> bytes:
    sections = [("__nv_module_id", b"_id\0"), ("__nv_relfatbin", fatbin), SEGMENT]
    if kernels is not None:
        sections.append((".nvHRKE", b"".join(name.encode() + b"\0" for name in kernels) or b"\0"))
        sections.append((".nvHRKI", b"\0"))
    return host_object(sections, machine)


def check(files: Mapping[str, bytes], arch: str, options: Sequence[str] = (), **ours: Any) -> bytes:
    """Link with both tools; the image, when output and messages are equal.

    `ours` are keywords for pylink alone.
    """
    with tempfile.TemporaryDirectory(prefix="pylink-inputs-") as folder:
        cwd = Path(folder)
        for name, data in files.items():
            (cwd / name).write_bytes(data)
        argv = [f"-arch=sm_{arch}", *options, *files, "-o", "out.cubin"]
        theirs = oracle.run_nvlink(argv, cwd, "out.cubin")
    log = io.StringIO()
    asked = {**keywords(options), **ours}
    image = pylink.link(list(files.items()), arch=f"sm_{arch}", log=log, **asked).image
    assert theirs.code == 0, theirs.stderr
    assert theirs.image is not None
    assert without_notes(log.getvalue()) == as_pylink(theirs.stderr)
    assert compare(image, theirs.image) == []
    return image


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arch", FAMILIES)
def test_fat_binaries_and_host_objects(arch: str, mode: str) -> None:
    seed = SEEDS[(FAMILIES.index(arch) + MODES.index(mode)) % len(SEEDS)]
    packed = [container(entry(data, sm(arch), mode=mode)) for data in cubins(seed, arch)]
    alone = check({f"m{n}.fatbin": data for n, data in enumerate(packed)}, arch)
    hosted = check({f"m{n}.o": host(data) for n, data in enumerate(packed)}, arch)
    assert alone == hosted


@pytest.mark.parametrize(
    ("arch", "option"),
    [(arch, option) for arch in ("75", "90a", "100") for option in ("-r", "-g")]
    + [("75", "-preserve-relocs")],
)
def test_options_on_mixed_inputs(arch: str, option: str) -> None:
    seed = SEEDS[(2 * len(option) + sm(arch)) % len(SEEDS)]
    files = {}
    for number, data in enumerate(cubins(seed, arch)):
        packed = container(entry(data, sm(arch), mode=MODES[number % 3]))
        name, contents = [
            (f"m{number}.cubin", data),
            (f"m{number}.fatbin", packed),
            (f"m{number}.o", host(packed, [])),
        ][number % 3]
        files[name] = contents
    check(files, arch, [option])


@pytest.mark.parametrize("option", [None, "-use-host-info", "-ignore-host-info", "-r", "-g"])
@pytest.mark.parametrize("arch", FAMILIES)
def test_host_information(arch: str, option: str | None) -> None:
    seed = SEEDS[FAMILIES.index(arch)]
    names = program(seed).kernels
    used = [name + "*" * (number % 4 == 0) for number, name in enumerate(names[::2])]
    files = {
        f"m{number}.o": host(container(entry(data, sm(arch), mode="zstd")), used)
        for number, data in enumerate(cubins(seed, arch))
    }
    image = check(files, arch, [option] if option else [])
    assert used[0].rstrip("*").encode() in image


@pytest.mark.parametrize("machine", [62, 183, 21, 243])
def test_objects_of_every_host(machine: int) -> None:
    first, *rest = cubins(SEEDS[0], "90a")
    files = {"m0.o": host(container(entry(first, 90)), machine=machine)}
    files |= {f"m{n}.cubin": data for n, data in enumerate(rest, 1)}
    check(files, "90a")


def packed_by_fatbinary(images: Sequence[tuple[str, str, bytes]], mode: str) -> bytes:
    """A fat binary of (kind, sm, bytes), made by the tool that nvcc calls."""
    with tempfile.TemporaryDirectory(prefix="pylink-inputs-") as folder:
        cwd = Path(folder)
        argv = [oracle.toolchain().tool("fatbinary"), "-64", "--device-c", "--create=out"]
        argv += ["--cmdline=--compile-only  ", f"--compress-mode={mode}"]
        for number, (kind, arch, data) in enumerate(images):
            (cwd / f"{number}").write_bytes(data)
            argv.append(f"--image3=kind={kind},sm={arch},file={number}")
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (cwd / "out").read_bytes()


@pytest.mark.parametrize("mode", ["default", "none", "size", "speed", "balance"])
def test_every_compression_mode_of_the_tool(mode: str) -> None:
    arch = FAMILIES[len(mode) % len(FAMILIES)]
    packed = [packed_by_fatbinary([("elf", arch, data)], mode) for data in cubins(SEEDS[1], arch)]
    check({f"m{n}.o": host(data) for n, data in enumerate(packed)}, arch)


def tagged(arch: str, tag: str) -> str:
    return (
        f".version 9.0\n.target sm_{arch}\n.address_size 64\n"
        f".visible .global .align 4 .u32 chosen_{tag} = 1;\n"
    )


@pytest.mark.parametrize(
    ("arch", "entries", "chosen"),
    [
        ("89", "s80 s86 p80", "s86"),
        ("90", "p75 p80 p86", "p86"),
        ("90", "s90 s90a", "s90a"),
        ("103", "s100 s100f p100", "s100f"),
        ("103", "s100 p103", "p103"),
        ("103a", "s103 s103a s103f", "s103a"),
        ("121", "s120 p120", "s120"),
        ("121a", "p121a s120", "p121a"),
        ("90", "p90a", None),
        ("90", "s80 s100", None),
    ],
)
def test_choice_among_entries(arch: str, entries: str, chosen: str | None) -> None:
    images = []
    for name in entries.split():
        ptx = tagged(name[1:], name)
        if name[0] == "s":
            images.append(("elf", name[1:], oracle.assemble(ptx, name[1:])))
        else:
            images.append(("ptx", name[1:], ptx.encode()))
    packed = {"f.fatbin": packed_by_fatbinary(images, "default")}
    if chosen is None:  # nvlink ends with 0 and links nothing
        with pytest.raises(pylink.LinkError, match=f"No input has code for 'sm_{arch}'"):
            pylink.link(list(packed.items()), arch=f"sm_{arch}")
        return
    image = check(packed, arch)
    found = [name for name in entries.split() if f"chosen_{name}\0".encode() in image]
    assert found == [chosen]


@pytest.mark.parametrize("arch", ["75", "90a", "100"])
def test_ptx_entries(arch: str) -> None:
    """One module is PTX, the others are machine code."""
    module = program(UNFLAGGED).modules[0]
    virtual = oracle.PTX_ARCH[arch]
    text = oracle.compile_ptx(module.source, virtual, name=module.name)
    packed = [packed_by_fatbinary([("ptx", virtual, text.encode())], "default")]
    assert packed[0][16] == PTX
    for data in cubins(UNFLAGGED, arch)[1:]:
        packed.append(packed_by_fatbinary([("elf", arch, data)], "default"))
    check({f"m{number}.o": host(data) for number, data in enumerate(packed)}, arch)


def test_registered_binaries(tmp_path: Path) -> None:
    first, second = (oracle.assemble(tagged("90", tag), "90") for tag in "ab")
    twice = container(entry(oracle.assemble(tagged("80", "c"), "80"), 80))
    files = {
        "a.o": host_object(
            [("__nv_module_id", b"_a b\xe9\0"), ("__nv_relfatbin", container()), SEGMENT]
        ),
        "plain.o": host_object([(".text", b"\x90")]),
        "b.cubin": first,
        "c.o": host_object([("__nv_relfatbin", container(entry(second, 90))), SEGMENT]),
        "two.o": host_object(
            [("__nv_module_id", b"_x\0\0\0_y"), ("__nv_relfatbin", twice), SEGMENT]
        ),
        "wrong.fatbin": twice,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    words = [f"{tmp_path}/{name}" for name in files]
    argv = ["-arch=sm_90", "--register-link-binaries", "theirs.c", *words, "-o", "out"]
    assert oracle.run_nvlink(argv, tmp_path).code == 0
    ours = tmp_path / "ours.c"
    pylink.link(words, arch="sm_90", register_link_binaries=str(ours))
    assert ours.read_bytes() == (tmp_path / "theirs.c").read_bytes()


def test_inputs_without_device_code_make_an_empty_executable() -> None:
    for arch in FAMILIES:
        check({"plain.o": host_object([(".text", b"\x90")])}, arch)
