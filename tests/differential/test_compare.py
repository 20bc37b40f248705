"""The comparison itself: it must see every difference and excuse only what it may."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from helpers.compare import image_differences

from pylink.inspect.image import Image
from pylink.inspect.layout import TOOL_NOTE, actual_layout, expected_layout

GOLDEN = Path(__file__).parent.parent / "golden"
IMAGES = sorted(GOLDEN.glob("*/*/exec.nvlink.cubin"))
SM_100 = GOLDEN / "100" / "calls" / "exec.nvlink.cubin"
SM_75 = GOLDEN / "75" / "calls" / "exec.nvlink.cubin"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*/*.nvlink.cubin")), ids=str)
def test_layout_rule_reproduces_nvlink(path: Path) -> None:
    image = Image(path.read_bytes())
    note = image.section(TOOL_NOTE)  # 12.9 writes none below sm_100
    assert expected_layout(image, note.size if note else 0) == actual_layout(image)


@pytest.mark.parametrize("path", IMAGES, ids=str)
def test_an_image_equals_itself(path: Path) -> None:
    data = path.read_bytes()
    assert image_differences(data, bytes(bytearray(data))) == []


@pytest.mark.parametrize("path", [SM_75, SM_100], ids=["sm_75", "sm_100"])
def test_every_flipped_bit_outside_note_and_control_fields_is_seen(path: Path) -> None:
    data = path.read_bytes()
    image = Image(data)
    rng = random.Random(5)
    for _ in range(400):
        at, bit = rng.randrange(len(data)), rng.randrange(8)
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        assert bool(image_differences(bytes(changed), data)) != _excused(image, at, bit), (
            f"{at:#x}.{bit}"
        )


def _excused(image: Image, at: int, bit: int) -> bool:
    """Whether this bit may differ: in the linker's own note, or a control bit from sm_100 on."""
    for section in image.sections[1:]:
        if not section.offset <= at < section.offset + section.file_size:
            continue
        inside = at - section.offset
        if section.name == TOOL_NOTE:
            name_size, size = struct.unpack_from("<II", image.content(section))
            # A changed size field would move the notes behind it.
            own: int = 12 + name_size + size
            return 8 <= inside < own
        if section.name.startswith(".text.") and image.sm >= 100:
            bit_number: int = inside % 16 * 8 + bit
            return 110 <= bit_number < 122
    return False


def test_scoreboards_count_before_sm_100() -> None:
    data = SM_75.read_bytes()
    image = Image(data)
    text = next(s for s in image.sections if s.name.startswith(".text."))
    changed = bytearray(data)
    changed[text.offset + 14] ^= 0x10
    assert any(text.name in line for line in image_differences(bytes(changed), data))


def test_the_report_names_the_symbol() -> None:
    data = SM_75.read_bytes()
    image = Image(data)
    symtab = image.section(".symtab")
    assert symtab is not None
    index = next(i for i, name in enumerate(image.symbols) if name == "counters")
    changed = bytearray(data)
    changed[symtab.offset + 24 * index + 16] ^= 1
    assert "counters" in image_differences(bytes(changed), data)[0]


def test_garbage_is_reported_not_raised() -> None:
    data = SM_75.read_bytes()
    assert image_differences(b"", data)
    assert image_differences(data[:100], data)
    assert image_differences(data[:-56], data)
