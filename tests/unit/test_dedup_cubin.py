"""Which sections of a cubin enter which vector, and what happens to a file that is none."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cubin_builder import with_wide_counts
from helpers.dedup_cubin import FRAME_RELA, SYMTAB, TEMPLATE, Cubin, Section, rela

import pylink
from pylink.dedup import MalformedCubin, MercuryObject, compare
from pylink.mercury.cubin import family_of

FAMILIES = [
    "debug_abbrev",
    "debug_aranges",
    "debug_frame",
    "debug_info",
    "debug_line",
    "debug_loc",
    "debug_macinfo",
    "debug_pubnames",
    "debug_pubtypes",
    "debug_ranges",
    "debug_str",
    "nv_debug_line_sass",
    "nv_debug_info_reg_sass",
    "nv_debug_info_reg_type",
    "nv_debug_ptx_txt",
    "symtab_shndx",
]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_families_by_name(name: str) -> None:
    assert family_of(f".nv.merc.{name}".encode()) == name
    assert family_of(f".{name}".encode()) is None
    assert family_of(f".nv.merc.{name}x".encode()) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".nv.merc.text.k", "container"),
        (".nv.capmerc.text.k", "container"),
        (".nv.merc.nv.shared.reserved.0", "nv.shared.reserved"),
        (".nv.merc.nv_debug_ptx_txt.388789078", "nv_debug_ptx_txt"),
        (".nv.merc.rela.debug_info", None),
        (".nv.merc.symtab", None),
        (".nv.merc.nv.info", None),
        (".nv.merc.nv.info.k", None),
        (".nv.merc.nv.global.init", None),
        (".nv.merc.unheard_of", None),
        (".text.k", None),
    ],
)
def test_the_other_names(name: str, expected: str | None) -> None:
    assert family_of(name.encode()) == expected


def test_the_vectors_of_a_cubin() -> None:
    item = MercuryObject.from_cubin(TEMPLATE.image(), "m.cubin")
    # Sections: null, .shstrtab, .strtab, then those of the template; symtab is the ninth.
    assert item.headers == (
        (b".nv.capmerc.text.k", 9, 9 | 1 << 32, 16),
        (b".nv.merc.debug_frame", 5, 0, 1),
        (b".nv.merc.debug_line", 4, 0, 1),
    )
    assert [bytes(data) for data in item.primary] == [b"\x04\0capsule", b"frame", b"line"]
    assert [(name, bytes(data)) for name, data in item.targets] == [
        (b".nv.merc.rela.debug_frame", rela(1, 2, 3))
    ]
    assert item.families == ("container", "debug_frame", "debug_line")
    assert item.unlisted == ((".nv.merc.nv.info", 4), (SYMTAB, 4 * 24))
    assert item.size == 9 + 5 + 4 + 72


def test_numbers_of_sections_too_large_for_the_header() -> None:
    wide = MercuryObject.from_cubin(with_wide_counts(TEMPLATE.image()))
    plain = MercuryObject.from_cubin(TEMPLATE.image())
    assert wide.headers == plain.headers
    assert compare(wide, plain).code == 0


def test_unknown_mercury_names_are_listed_and_never_compared() -> None:
    other = Cubin([*TEMPLATE.sections, Section(".nv.merc.news", b"x")], TEMPLATE.symbols)
    more = Cubin([*TEMPLATE.sections, Section(".nv.merc.news", b"yy")], TEMPLATE.symbols)
    items = [MercuryObject.from_cubin(cubin.image()) for cubin in (other, more)]
    assert (".nv.merc.news", 1) in items[0].unlisted
    assert compare(*items).code == 0


def test_sections_without_bytes_have_their_size_in_the_header_only() -> None:
    reserved = Section(".nv.merc.nv.shared.reserved.1", b"sixteen bytes...", 8)
    item = MercuryObject.from_cubin(Cubin([*TEMPLATE.sections, reserved], TEMPLATE.symbols).image())
    assert item.headers[-1][1] == 16
    assert item.primary[-1] == b""


def test_a_cubin_without_mercury_sections_has_empty_vectors() -> None:
    item = MercuryObject.from_cubin(Cubin([Section(".text.k", b"code")], []).image())
    assert (item.primary, item.headers, item.targets) == ((), (), ())


def test_a_writable_buffer_is_copied() -> None:
    data = bytearray(TEMPLATE.image())
    item = MercuryObject.from_cubin(data)
    data[:] = bytes(len(data))
    assert compare(MercuryObject.from_cubin(TEMPLATE.image()), item).code == 0


@pytest.mark.parametrize(
    ("cubin", "message"),
    [
        (TEMPLATE.with_section(FRAME_RELA, data=rela(1)[:-1]), "not whole entries"),
        (TEMPLATE.with_section(FRAME_RELA, data=rela(4)), "runs past its table"),
        (TEMPLATE.with_section(FRAME_RELA, link=1), "bad sh_link or sh_info"),
        (TEMPLATE.with_section(FRAME_RELA, info=99), "bad sh_link or sh_info"),
        (TEMPLATE.with_section(".nv.merc.debug_line", align=1 << 32), "sh_addralign"),
        (Cubin([*TEMPLATE.sections, Section(SYMTAB)], TEMPLATE.symbols), "instead of one"),
    ],
)
def test_inconsistent_tables_are_refused(cubin: Cubin, message: str) -> None:
    with pytest.raises(MalformedCubin, match=message) as caught:
        MercuryObject.from_cubin(cubin.image(), "bad.cubin")
    assert str(caught.value).startswith("bad.cubin: ")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"x" * 100, b"\x7fELF\x01".ljust(64, b"\0")])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedCubin):
        MercuryObject.from_cubin(data)


def read_or_refuse(data: bytes) -> None:
    try:
        item = MercuryObject.from_cubin(data)
    except MalformedCubin:
        return
    assert compare(item, item).code in (0, 18, 19)


def test_a_truncated_cubin_is_read_or_refused() -> None:
    image = TEMPLATE.image()
    for size in range(len(image)):
        read_or_refuse(image[:size])


def test_a_damaged_cubin_is_read_or_refused() -> None:
    image = TEMPLATE.image()
    rng = random.Random(1)
    for _ in range(4000):
        data = bytearray(image)
        for _ in range(rng.choice((1, 1, 4))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        read_or_refuse(bytes(data))


LOADED = """
import sys
sys.path[:0] = {path!r}
before = set(sys.modules)
from pylink.dedup import MercuryObject, fold
items = [MercuryObject.from_cubin({image!r}) for _ in range(2)]
assert fold(items).reference == [None, 0]
print(*sorted(set(sys.modules) - before))
"""


def test_folding_cubins_loads_nothing_that_is_slow_to_start() -> None:
    """A link folds by default; without ties in need of digests not even xxhash is loaded."""
    path = [str(Path(pylink.__file__).parent.parent)]
    program = LOADED.format(path=path, image=TEMPLATE.image())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "pylink.mercury.folding" in loaded
    slow = {"argparse", "collections", "dataclasses", "enum", "json", "re", "typing", "xxhash"}
    assert not loaded & slow
