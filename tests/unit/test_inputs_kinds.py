"""What an input is follows from its first bytes, whatever it is called."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import container, entry, host_object
from hypothesis import given, settings
from hypothesis import strategies as st

import pylink
from pylink._native import inputfiles, payloads
from pylink.facts import inputkinds
from pylink.inputs.picks import pack_cubin_row

CUBIN = one_kernel().build()
FATBIN = container(entry(CUBIN, 80, mode="zstd"))
HOST = host_object([("__nv_relfatbin", FATBIN)])
PTX = b".version 9.0\n.target sm_80\n.address_size 64\n"

KINDS = [
    (CUBIN, inputkinds.CUBIN),
    (HOST, inputkinds.HOST),
    (FATBIN, inputkinds.FATBIN),
    (b"!<arch>\n", inputkinds.ARCHIVE),
    (b"!<thin>\n", inputkinds.THIN_ARCHIVE),
    (PTX, inputkinds.PTX),
    (b"\t \r\n" + PTX, inputkinds.PTX),
    (b"// a comment\n/* and\n * another **/" + PTX, inputkinds.PTX),
    (struct.pack("<I", 0x7F4E43ED), inputkinds.LTOIR),
    (b"hello", inputkinds.UNKNOWN),
    (b"/* .version", inputkinds.UNKNOWN),
    (b"//.version", inputkinds.UNKNOWN),
    (b"/.version", inputkinds.UNKNOWN),
    (b".versio", inputkinds.UNKNOWN),
    (b"!<arch>", inputkinds.UNKNOWN),
    (b"", inputkinds.EMPTY),
    # Only the reader of cubins can say what is wrong with these.
    (b"\x7fELF", inputkinds.CUBIN),
    (HOST[:4] + b"\1" + HOST[5:], inputkinds.CUBIN),
]


def classify(*files: bytes) -> bytes:
    """The kinds of files that lie back to back, so that reading past one would show."""
    extents, at = b"", 0
    for data in files:
        extents += struct.pack("<QQ", at, len(data))
        at += len(data)
    return inputfiles.classify(b"".join(files), extents) or bytes(len(files))


@pytest.mark.parametrize(("data", "kind"), KINDS, ids=lambda value: "")
def test_first_bytes(data: bytes, kind: int) -> None:
    assert classify(data, PTX) == bytes([kind, inputkinds.PTX])


def test_a_link_of_cubins_needs_no_kinds() -> None:
    assert inputfiles.classify(CUBIN * 2, struct.pack("<4Q", 0, len(CUBIN), 0, len(CUBIN))) == b""
    with pytest.raises(IndexError):
        inputfiles.classify(CUBIN, struct.pack("<2Q", 8, len(CUBIN)))


@given(st.lists(st.sampled_from([b"/", b"*", b"\n", b" ", b".version", b"x"]), max_size=12))
@settings(max_examples=500, derandomize=True)
def test_comments_before_ptx_agree_with_a_reference(parts: list[bytes]) -> None:
    data = b"".join(parts)
    (kind,) = classify(data)
    assert (kind == inputkinds.PTX) == is_ptx(data)


def is_ptx(data: bytes) -> bool:
    while True:
        data = data.lstrip(b" \t\n\r\v\f")
        if data.startswith(b"//"):
            data = data.partition(b"\n")[2]
        elif data.startswith(b"/*") and b"*/" in data[2:]:
            data = data[2:].partition(b"*/")[2]
        else:
            return data.startswith(b".version")


@pytest.mark.parametrize("name", ["a", "a.xyz", "a.cubin", "a.o", "a.txt", "\u00e9.fatbin"])
@pytest.mark.parametrize("data", [CUBIN, FATBIN, HOST], ids=["cubin", "fatbin", "host"])
def test_any_name_will_do(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    image = pylink.link([tmp_path / name], arch="sm_80").image
    assert image == pylink.link([CUBIN], arch="sm_80").image


@pytest.mark.parametrize("data", [CUBIN, FATBIN, HOST], ids=["cubin", "fatbin", "host"])
def test_every_kind_comes_through_a_pipe(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    image = pylink.link([path], arch="sm_80").image
    writer.join()
    assert image == pylink.link([CUBIN], arch="sm_80").image


def test_kinds_mix_in_command_order() -> None:
    names = ["a", "b", "c", "d"]
    a, b, c, d = (one_kernel(name).build() for name in names)
    inputs = [
        ("a.fatbin", container(entry(a, 80, mode="lz4"))),
        ("b.cubin", b),
        ("c.o", host_object([("__nv_relfatbin", container(entry(c, 80)))])),
        ("d.cubin", d),
    ]
    plain = [(f"{name}.cubin", data) for name, data in zip(names, (a, b, c, d), strict=True)]
    mixed = pylink.link(inputs, arch="sm_80").image
    assert mixed == pylink.link(plain, arch="sm_80").image


def test_an_unknown_file_is_named() -> None:
    with pytest.raises(pylink.LinkError, match=r"'notes\.txt' is not a cubin, fat binary, host"):
        pylink.link([("notes.txt", b"hello " * 40), ("a.cubin", CUBIN)], arch="sm_80")


def test_an_executable_is_refused_wherever_it_is() -> None:
    linked = pylink.link([CUBIN], arch="sm_80").image
    for data in (linked, container(entry(linked, 80)), host_object(
        [("__nv_relfatbin", container(entry(linked, 80, mode="zstd")))]
    )):  # fmt: skip
        with pytest.raises(pylink.LinkError, match=r"'a\.o' is not relocatable .*-rdc=true"):
            pylink.link([("a.o", data)], arch="sm_80")


def test_gather_takes_files_one_by_one() -> None:
    files = [b"abc", b"", b"x" * 16, b"y" * 17]
    rows = b"".join(pack_cubin_row(-1, 0, len(file)) for file in files)
    arena, extents = payloads.gather(rows, [], files.__getitem__)
    paths: list[bytes | None] = [None] * 4
    assert (arena, extents) == inputfiles.read_files(
        paths, [len(file) for file in files], [*files]
    )[:2]
    # Or copies them from where they lie.
    whole = b"".join(files)
    places = [(sum(map(len, files[:number])), len(data)) for number, data in enumerate(files)]
    rows = b"".join(pack_cubin_row(0, *place) for place in places)
    assert (
        payloads.gather(rows, [whole], dict[int, bytes]().__getitem__)
        == (inputfiles.read_files(paths, [len(file) for file in files], [*files])[:2])
    )
    # What is not as large as it was said to be is empty, however large that was.
    rows = pack_cubin_row(-1, 0, 1 << 28) + pack_cubin_row(-1, 0, 3)
    _, extents = payloads.gather(rows, [], [b"four", b"abc"].__getitem__)
    assert struct.unpack("<4Q", extents) == (0, 0, 1 << 28, 3)
    with pytest.raises(KeyError):
        payloads.gather(pack_cubin_row(-1, 0, 3), [], dict[int, bytes]().__getitem__)
