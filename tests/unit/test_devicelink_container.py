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

from pylink._native.elfheaders import read_sections
from pylink.devicelink.compression import LARGE, MODES, choose_mode
from pylink.devicelink.container import make_container
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
    made = b"".join(make_container(cubins, chosen, debug=debug, name=name.encode()).pieces)
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
    cubins = [("sm_100", sized(data, LARGE + more)) for more in (0, 1)]
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
    made = make_container([("sm_90a", data)], choose_mode("size", debug=False))
    entries = split(b"".join(made.pieces))
    assert [payload for _, payload in entries] == [data]
    assert ENTRY.unpack_from(entries[0][0])[11] & FLAG_ZSTD


def test_what_is_no_architecture_or_no_cubin_is_an_error() -> None:
    with pytest.raises(ValueError, match="compute_90"):
        make_container([("compute_90", b"")], MODES["none"])
    with pytest.raises(ValueError, match="ELF header"):
        make_container([("sm_100", b"no cubin")], MODES["none"])


def test_the_demo_has_what_makes_a_block() -> None:
    """The comparisons would say nothing of the block otherwise."""
    names = [one.name for one in read_sections((LINKED / "sm_100.cubin").read_bytes())[2]]
    assert b".nv.compat" in names
