"""Where a section of a cubin starts, found for a report that names it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from helpers.cubin_builder import SHT_PROGBITS, Cubin, Section, with_wide_counts
from helpers.fatbin_builder import host_object

from pylink.renderers.section_offset import section_offset


def cubin() -> Cubin:
    made = Cubin()
    made.function("kernel", kernel=True)
    for data in (b"first", b"second"):
        made.section(Section(".same", SHT_PROGBITS, data))
    made.section(Section(".odd \udcff", SHT_PROGBITS, b"third"))
    return made


@pytest.mark.parametrize("wide", [False, True])
def test_the_first_section_of_a_name(wide: bool, tmp_path: Path) -> None:
    made = cubin()
    image = made.build()
    (tmp_path / "a").write_bytes(with_wide_counts(image) if wide else image)
    for name in (".text.kernel", ".same", ".odd \udcff", ".symtab"):
        assert section_offset(str(tmp_path / "a"), name) == made.starts[made.find(name)], name
    assert section_offset(str(tmp_path / "a"), ".text.kern") is None
    assert section_offset(str(tmp_path / "a"), "same") is None


def test_a_section_beside_one_that_runs_past_the_file(tmp_path: Path) -> None:
    made = cubin()
    image = bytearray(made.build())
    (table,) = struct.unpack_from("<Q", image, 40)
    struct.pack_into("<Q", image, table + 64 * made.find(".same") + 32, 1 << 40)
    (tmp_path / "a").write_bytes(image)
    for name in (".same", ".odd \udcff"):
        assert section_offset(str(tmp_path / "a"), name) == made.starts[made.find(name)], name


def test_files_that_do_not_tell(tmp_path: Path) -> None:
    image = cubin().build()
    files = {
        "text": b"hello " * 40,
        "host": host_object([(".same", b"x")]),
        "32-bit": image[:4] + b"\1" + image[5:],
        "entries": image[:58] + b"\x3f" + image[59:],
    }
    for size in (0, 40, 63, 64, len(image) - 64 * 3):
        files[f"cut {size}"] = image[:size]
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert section_offset(str(tmp_path / name), ".odd \udcff") is None, name
    assert section_offset(str(tmp_path / "none"), ".same") is None
    assert section_offset(str(tmp_path), ".same") is None
