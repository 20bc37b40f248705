"""Fat binaries against those of fatbinary, byte for byte."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from helpers import oracle
from helpers.containers import split, without_sizes

from pylink._native.elfheaders import find_section, read_sections
from pylink.devicelink import compression
from pylink.devicelink.compression import COMPRESSION_THRESHOLD, MODES, Mode, choose_mode, compress
from pylink.devicelink.container import EntryForm, make_container, make_entry
from pylink.facts.fatbinentries import ENTRY, FLAG_LZ4, FLAG_ZSTD

LINKED = Path(__file__).parents[2] / "demo" / "linked"
# The version of libzstd that fatbinary has: others compress to other bytes.
FATBINARY_ZSTD = (1, 5, 7)
SAME_ZSTD = zstandard.ZSTD_VERSION == FATBINARY_ZSTD
RELEASES = [oracle.DEFAULT, *oracle.others()]


def sized(data: bytes, size: int) -> bytes:
    """A cubin of so many bytes: a longer file that is hard to compress in part."""
    if size <= len(data):
        return data
    noise = random.Random(1).randbytes(1 << 18)
    return (data + noise * (size // len(noise) + 1))[:size]


def fatbinary(folder: Path, cubins: list[tuple[str, bytes]], *words: str) -> bytes:
    """What the real tool makes, called as nvcc calls it."""
    images = []
    for number, (arch, data) in enumerate(cubins):
        (folder / f"{number}.cubin").write_bytes(data)
        images.append(f"--image3=kind=elf,sm={arch[3:]},file={folder}/{number}.cubin")
    command = [
        oracle.toolchain().tool("fatbinary"),
        "-64",
        "--cmdline=--compile-only  ",
        "-link",
        *words,
        *images,
        f"--create={folder}/real.fatbin",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "real.fatbin").read_bytes()


def sets() -> Iterator[list[tuple[str, bytes]]]:
    for names in (("sm_90a",), ("sm_100",), ("sm_90a", "sm_100"), ("sm_100", "sm_90a")):
        yield [(name, (LINKED / f"{name}.cubin").read_bytes()) for name in names]


def packed(cubins: list[tuple[str, bytes]], form: EntryForm) -> bytes:
    """The container of these cubins."""
    return b"".join(make_container([make_entry(*cubin, form) for cubin in cubins]).pieces)


def compare(
    folder: Path,
    cubins: list[tuple[str, bytes]],
    mode: str,
    *,
    debug: bool,
    everything: bool,
    name: str,
) -> None:
    words = [] if mode == "default" else [f"--compress-mode={mode}"]
    words += ["-g"] if debug else []
    words += ["-compress-all"] if everything else []
    words += [f"--ident={name}"] if name else []
    real = fatbinary(folder, cubins, *words)
    chosen = choose_mode(mode, debug=debug, compress_all=everything)
    made = packed(cubins, EntryForm(chosen, debug=debug, name=name.encode()))
    exact = SAME_ZSTD or not chosen.flag
    if chosen.flag == FLAG_LZ4 or not exact:
        assert without_sizes(split(made)) == without_sizes(split(real))
    else:
        assert made == real, "libzstd 1.5.7" if SAME_ZSTD else "not compressed"


@oracle.needs_oracle
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("mode", MODES)
def test_containers_are_those_of_fatbinary(tmp_path: Path, mode: str, release: str) -> None:
    with oracle.release(release):
        for cubins, debug, everything, name in itertools.product(
            sets(),
            (False, True),
            (False, True),
            ("", "sub/a.o b.o ", "1234567", "12345678"),
        ):
            if name and everything:
                continue
            compare(tmp_path, cubins, mode, debug=debug, everything=everything, name=name)


@oracle.needs_oracle
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "size"])
def test_each_entry_is_compressed_by_its_own_size(tmp_path: Path, mode: str) -> None:
    data = (LINKED / "sm_100.cubin").read_bytes()
    cubins = [("sm_100", sized(data, COMPRESSION_THRESHOLD + more)) for more in (0, 1)]
    compare(tmp_path, cubins, mode, debug=False, everything=False, name="")


@oracle.needs_oracle
def test_suffixes_are_flags(tmp_path: Path) -> None:
    source = "__global__ void k(int *p) { *p = 1; }"
    for arch in ("75", "80", "100a", "100f", "103f", "120a"):
        data = oracle.link([oracle.compile(source, arch)], arch).image
        assert data is not None
        cubins = [(f"sm_{arch}", data)]
        compare(tmp_path, cubins, "default", debug=False, everything=False, name="")


def test_data_that_grows_is_stored_compressed_all_the_same() -> None:
    data = (LINKED / "sm_90a.cubin").read_bytes() + random.Random(2).randbytes(1 << 20)
    entries = split(packed([("sm_90a", data)], EntryForm(choose_mode("size", debug=False))))
    assert [payload for _, payload in entries] == [data]
    assert ENTRY.unpack_from(entries[0][0])[11] & FLAG_ZSTD


def test_what_is_no_architecture_or_no_cubin_is_an_error() -> None:
    form = EntryForm(MODES["none"])
    with pytest.raises(ValueError, match="compute_90"):
        make_entry("compute_90", b"", form)
    with pytest.raises(ValueError, match="ELF header"):
        make_entry("sm_100", b"no cubin", form)


@pytest.mark.parametrize("level", [5, 19])
def test_frames_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    """They are made by its library, without the package, and where that cannot be, by itself."""
    mode = Mode(FLAG_ZSTD, level, -1)
    data = (LINKED / "sm_100.cubin").read_bytes()
    for size in (0, 1, 1000, len(data), len(data) + (1 << 20)):
        made = compress(sized(data, size)[:size], mode)
        with monkeypatch.context() as patch:
            patch.setattr(compression, "load_codec", lambda *_: False)
            assert compress(sized(data, size)[:size], mode) == made


def test_a_section_is_found_by_its_name() -> None:
    for name in ("sm_90a", "sm_100"):
        data = (LINKED / f"{name}.cubin").read_bytes()
        sections = read_sections(data).sections
        for wanted in {*(section.name for section in sections if section.stored > 0), b".none"}:
            first = [section for section in sections if section.name == wanted][:1]
            places = [(section.offset, section.stored) for section in first]
            assert find_section(data, wanted) == (places[0] if places else None)


def test_the_demo_has_what_makes_a_block() -> None:
    """The comparisons would say nothing of the block otherwise."""
    names = [
        read_section.name
        for read_section in read_sections((LINKED / "sm_100.cubin").read_bytes()).sections
    ]
    assert b".nv.compat" in names
