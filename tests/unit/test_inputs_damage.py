"""Damaged fat binaries and host objects: one error that names file, section, entry and reason."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import LTOIR, MAGIC, compress, container, entry, host_object
from hypothesis import given, settings
from hypothesis import strategies as st

import pylink
from pylink import rowformats
from pylink._native import payloads
from pylink.facts import inputkinds
from pylink.facts.picknumbers import Codec, PickOrigin, PickState
from pylink.inputs import payload

CUBIN = one_kernel().build()
GOOD = container(entry(CUBIN, 80, mode="zstd"))
KEYWORD = {"zstd": "Zstandard", "lz4": "LZ4"}


def host(fatbin: bytes) -> bytes:
    return host_object([("__nv_module_id", b"_id\0"), ("__nv_relfatbin", fatbin)])


def refusal(data: bytes, name: str = "a.o", limit: int | None = None) -> str:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([(name, data)], arch="sm_80", max_uncompressed_size=limit)
    (record,) = caught.value.diagnostics
    return record.message


def in_fatbin(data: bytes, limit: int | None = None) -> str:
    """The reason that both a file and a host object of these bytes are refused for."""
    alone, hosted = refusal(data, "a.fatbin", limit), refusal(host(data), "a.o", limit)
    head, _, reason = re.split("fat binary is (damaged|too large): ", alone)
    assert head.startswith("a.fatbin")
    assert hosted.startswith("a.o: __nv_relfatbin")
    assert hosted.endswith(reason)
    return head.removeprefix("a.fatbin").strip(": ") + " " + reason


def test_what_is_whole_links() -> None:
    alone = pylink.link([("a.fatbin", GOOD)], arch="sm_80").image
    assert alone == pylink.link([("a.o", host(GOOD))], arch="sm_80").image
    assert alone == pylink.link([("a.cubin", CUBIN)], arch="sm_80").image


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<IHHQ", MAGIC, 2, 16, 0), "container version 2, not 1"),
        (struct.pack("<IHHQ", MAGIC, 1, 0, 0), "a container header of 0 bytes"),
        (
            struct.pack("<IHHQ", MAGIC, 1, 17, 0),
            "a container header of 17 bytes; 16 are needed, and 16 are left",
        ),
        (
            struct.pack("<IHH", MAGIC, 1, 16),
            "a container header of 8 bytes; 16 are needed, and 8 are left",
        ),
        (container(size=1 << 63), "a container of 9223372036854775808 bytes, and 0 are left"),
        (container(size=(1 << 64) - 1), "a container of 18446744073709551615 bytes"),
        (container(b"\0" * 8), "[0] 8 bytes are left, and an entry header needs 64"),
        (container(entry(CUBIN, 80, header=0)), "[0] an entry header of 0 bytes; 64 are needed"),
        (container(entry(CUBIN, 80, header=1 << 31)), "[0] an entry header of 2147483648 bytes"),
        (container(entry(CUBIN, 80, size=1 << 40)), "[0] a payload of 1099511627776 bytes, and"),
        (container(entry(CUBIN, 80, size=(1 << 64) - 64)), "[0] a payload of 184467440737095"),
        (container(entry(CUBIN, 75), entry(CUBIN, 80, size=1 << 40)), "[1] a payload of 10995"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_structure(data: bytes, message: str) -> None:
    assert message in in_fatbin(data)


def test_one_report_on_an_object_with_two_damaged_sections() -> None:
    damaged = ("__nv_relfatbin", b"\1" * 64)
    assert "it starts with 0x1010101" in refusal(host_object([damaged, damaged]))


def test_another_magic_number_in_a_host_object() -> None:
    assert refusal(host(b"\1" * 64)) == (
        "a.o: __nv_relfatbin: fat binary is damaged: it starts with 0x1010101, not 0xba55ed50"
    )


@pytest.mark.parametrize("mode", ["zstd", "lz4"])
def test_damaged_payloads(mode: str) -> None:
    by_package = f"[0] {KEYWORD[mode]}: "
    for stored in (compress(CUBIN, mode)[:-9], b"\xff" * 40):
        assert in_fatbin(container(entry(CUBIN, 80, mode=mode, stored=stored))).startswith(
            by_package
        )
    for stated in (0, len(CUBIN) - 8, len(CUBIN) + 8):
        reason = in_fatbin(container(entry(CUBIN, 80, mode=mode, stated=stated)))
        other = f"[0] it decompresses to {len(CUBIN)} bytes, not {stated}"
        # An LZ4 block does not tell its size: one that is too large is one that cannot be read.
        assert reason.startswith(by_package if mode == "lz4" and stated < len(CUBIN) else other)
    assert "both LZ4 and Zstandard" in in_fatbin(
        container(entry(CUBIN, 80, mode=mode, flags=0x11 | 0xA000))
    )


@pytest.mark.parametrize("mode", ["zstd", "lz4"])
def test_only_what_is_stated_is_decompressed(mode: str) -> None:
    """A bomb costs no more memory than its stated size, and that has a limit."""
    bomb = compress(bytes(1 << 26), mode)
    lying = container(entry(b"", 80, mode=mode, stored=bomb, stated=1 << 16))
    honest = container(entry(b"", 80, mode=mode, stored=bomb, stated=1 << 26))
    tracemalloc.start()
    assert in_fatbin(lying)
    limited = in_fatbin(honest, limit=1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "67108864 bytes when decompressed; --max-uncompressed-size allows 1048576" in limited
    assert "damaged" not in limited
    assert peak < 1 << 24
    huge = container(entry(b"", 80, mode=mode, stored=bomb, stated=1 << 40))
    assert f"allows {1 << 28} in all" in in_fatbin(huge)


def test_the_default_limit_follows_the_size_of_the_inputs() -> None:
    """No more than 256 MiB come out of a small file, and a hundred times as much of a large one."""
    frame = compress(bytes(1 << 20), "zstd")
    for stated, more, allowed in (
        (1 << 28, 0, 1 << 28),
        (1 << 28 | 1, 0, 1 << 28),
        (1 << 40, 3 << 20, 100 * (3 << 20)),
    ):
        bomb = container(entry(b"", 80, mode="zstd", stored=frame, stated=stated))
        inputs = [("a.fatbin", bomb), ("b.cubin", bytes(more) or CUBIN)]
        with pytest.raises(pylink.LinkError) as caught:
            pylink.link(inputs, arch="sm_80")
        said = str(caught.value)
        assert ("when decompressed; --max-uncompressed-size allows" in said) is (stated > allowed)
        if stated > allowed:
            limit = int(said.partition("allows ")[2].partition(" ")[0])
            # Inputs lie at multiples of 16 bytes.
            assert 0 <= limit - max(allowed, 100 * sum(len(data) for _, data in inputs)) <= 3200


def test_a_damaged_file_is_reported_once() -> None:
    """What is wrong with its structure hides what is wrong with entries before."""
    bad = container(entry(CUBIN, 80, flags=0x11 | 0xA000, mode="zstd"))
    assert "both LZ4 and Zstandard" in in_fatbin(bad)
    assert "a payload of 1099511627776 bytes" in in_fatbin(
        bad + container(entry(CUBIN, 80, size=1 << 40))
    )


def test_the_limit_counts_all_entries_together() -> None:
    inputs = [(f"{name}.fatbin", GOOD) for name in "abc"]
    enough = 3 * len(CUBIN)
    with pytest.raises(pylink.LinkError, match="Multiple definition"):
        pylink.link(inputs, arch="sm_80", max_uncompressed_size=enough)
    with pytest.raises(pylink.LinkError, match=r"^c\.fatbin: .* in all"):
        pylink.link(inputs, arch="sm_80", max_uncompressed_size=enough - 1)


def test_entries_that_are_not_chosen_may_hold_anything() -> None:
    other = entry(CUBIN, 75, mode="zstd", stored=b"not a frame", stated=1 << 60)
    image = pylink.link([("a.o", host(container(other, entry(CUBIN, 80))))], arch="sm_80").image
    assert image == pylink.link([("a.cubin", CUBIN)], arch="sm_80").image


@pytest.mark.parametrize("mode", ["none", "zstd", "lz4"])
def test_an_entry_without_a_cubin_is_named(mode: str) -> None:
    text = b"this is not a cubin".ljust(4096)
    data = container(entry(CUBIN, 75), entry(text, 80, mode=mode))
    assert in_fatbin(data) == "[1] its cubin is not an ELF file"


def test_every_truncation_is_refused() -> None:
    whole = host(GOOD)
    for size in range(1, len(whole)):
        message = refusal(whole[:size])
        assert "a.o" in message, size


def test_damaged_host_objects() -> None:
    whole = bytearray(host(GOOD))
    table = int.from_bytes(whole[40:48], "little")
    damaged = bytearray(whole)
    damaged[40:48] = b"\xff" * 8
    assert refusal(bytes(damaged)).startswith("a.o: host object is damaged: the section header")
    damaged = bytearray(whole)
    damaged[58] = 63  # e_shentsize
    assert "section header table" in refusal(bytes(damaged))
    damaged = bytearray(whole)
    damaged[60:62] = b"\xff\xff"  # e_shnum
    assert "section header table" in refusal(bytes(damaged))
    for field, message in ((0, "the name of section 2"), (24, "section 2 lies outside")):
        damaged = bytearray(whole)
        start = table + 2 * 64 + field
        damaged[start : start + 4] = b"\xff" * 4
        assert message in refusal(bytes(damaged))


def test_sections_that_share_their_bytes_cost_no_time() -> None:
    """Thousands of headers for one large section would make the work quadratic."""
    fatbin = container(*[entry(b"", 75) for _ in range(2000)])
    whole = host_object([("__nv_relfatbin", fatbin), *[("x", b"")] * 2000])
    table = int.from_bytes(whole[40:48], "little")
    header = whole[table + 64 : table + 128]
    damaged = whole[: table + 64] + header * 2001 + whole[table + 64 * 2002 :]
    assert "device code of" in refusal(damaged)


@pytest.mark.parametrize("name", ["na\u00efve \u2014 \U0001f4a5.o", "bytes \udcff.o", "a\nb.o"])
def test_names_that_are_no_ascii_are_shown(name: str) -> None:
    assert refusal(host(b"\1" * 64), name).startswith(f"{name}: __nv_relfatbin: ")


@pytest.mark.parametrize(("mode", "package"), [("zstd", "zstandard"), ("lz4", "lz4")])
def test_a_missing_package_is_named(mode: str, package: str, tmp_path: Path) -> None:
    (tmp_path / "a.fatbin").write_bytes(container(entry(CUBIN, 80, mode=mode)))
    program = "import sys; sys.path.append(sys.argv.pop(1)); from pylink.command.cli import main\n"
    program += "sys.exit(main(tool='pylink'))"
    folder = str(Path(pylink.__file__).parents[1])
    words = ["-I", "-S", "-c", program, folder, "-arch=sm_80", "a.fatbin", "-o", "out.cubin"]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    message = done.stderr.strip().partition(": ")[2]
    assert done.returncode == 1
    assert message.startswith(f"Input file 'a.fatbin' is compressed with {KEYWORD[mode]}")
    assert message.endswith(f"pip install {package}")


def test_native_decompression_needs_no_import(tmp_path: Path) -> None:
    """Importing a package takes longer than a small link."""
    packed = [container(entry(CUBIN, 80, mode=mode)) for mode in KEYWORD]
    (tmp_path / "a.fatbin").write_bytes(packed[0])
    (tmp_path / "b.o").write_bytes(host(packed[1]))
    program = "import sys; from pylink.command.cli import main; status = main(tool='pylink')\n"
    program += "print(status, *({'zstandard', 'lz4', 'lz4.block'} & set(sys.modules)))"
    for name in ("a.fatbin", "b.o"):
        done = subprocess.run(
            [sys.executable, "-c", program, "-arch=sm_80", name, "-o", "out.cubin"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == ("0\n", "")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["zstd", "lz4", "none"]),
            st.binary(max_size=300).map(lambda some: b"\x7fELF" + some * 20),
            st.integers(-2, 2),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_native_decompression_is_that_of_the_packages(
    files: list[tuple[str, bytes, int, bool]],
) -> None:
    """What it does not take, whole and of the size that is stated, is left to the packages."""
    codecs = {"zstd": Codec.ZSTD_FRAME, "lz4": Codec.LZ4_BLOCK}
    assert all(map(payload.open_library, codecs.values()))
    stored = [compress(data, mode) for mode, data, _, _ in files]
    damaged = [
        packed[: len(packed) // 2] if cut else packed
        for packed, (*_, cut) in zip(stored, files, strict=True)
    ]
    sizes = [len(data) + wrong for _, data, wrong, _ in files]
    rows = b"".join(
        row(number, 4, len(packed), codecs.get(mode, 0), size)
        for number, (packed, (mode, *_), size) in enumerate(zip(damaged, files, sizes, strict=True))
    )
    asked: list[int] = []

    def produce(number: int) -> bytes:
        asked.append(number)
        return b"?" * sizes[number]

    arena, extents = payloads.gather(rows, [b"head" + image for image in damaged], produce)
    places = memoryview(extents).cast("Q")
    for number, (_, data, wrong, cut) in enumerate(files):
        start, size = places[2 * number], places[2 * number + 1]
        good = not wrong and not cut
        assert (number in asked) == (not good)
        assert arena[start : start + size] == (data if good else b"?" * sizes[number])


def row(arena: int, offset: int, size: int, codec: int, full_size: int) -> bytes:
    """The row of a cubin that was an entry of a fat binary."""
    place = (0, offset, offset, size, size, full_size)
    return rowformats.PICK.pack(
        0, arena, 0, 0, 0, inputkinds.CUBIN, codec, PickState.GOOD, PickOrigin.FATBIN, *place
    )


def test_what_is_outside_of_its_arena_is_refused() -> None:
    for offset, size in ((5, 0), (0, 5), (2, 3), (2, 2**64 - 1)):
        for codec in (Codec.STORED, Codec.LZ4_BLOCK):
            with pytest.raises(ValueError, match="pick 0 is outside of its arena"):
                payloads.gather(row(0, offset, size, codec, 8), [b"four"], lambda _: b"")
    with pytest.raises(IndexError):
        payloads.gather(row(1, 0, 0, 0, 0), [b"four"], lambda _: b"")


def test_lto_entries_ask_for_their_option() -> None:
    lone = container(entry(b"x" * 64, 80, kind=LTOIR))
    assert refusal(lone, "a.fatbin") == "LTO objects found, use -dlto (a.fatbin)"


SAMPLE = host(container(entry(CUBIN, 75, mode="lz4"), entry(CUBIN, 80, mode="zstd")) * 2)


@given(data=st.data())
@settings(max_examples=400, derandomize=True)
def test_random_damage_ends_in_an_image_or_an_error(data: st.DataObject) -> None:
    image = bytearray(SAMPLE)
    place = st.integers(0, len(image) - 1)
    for at, bits in data.draw(st.lists(st.tuples(place, st.integers(1, 255)), max_size=6)):
        image[at] ^= bits
    at = data.draw(st.integers(0, len(image)))
    name = data.draw(st.sampled_from(["a.o", "a.fatbin", "a"]))
    try:
        linked = pylink.link([(name, bytes(image[:at] or image))], arch="sm_80").image
    except pylink.LinkError:
        return
    assert linked[:4] == b"\x7fELF"


@given(st.binary(max_size=400))
@settings(max_examples=300, derandomize=True)
def test_random_containers_end_in_an_image_or_an_error(noise: bytes) -> None:
    for data in (struct.pack("<IHHQ", MAGIC, 1, 16, len(noise)) + noise, host(noise)):
        try:
            linked = pylink.link([("a.o", data)], arch="sm_80").image
        except pylink.LinkError:
            continue
        assert linked[:4] == b"\x7fELF"
