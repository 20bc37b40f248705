"""The account of order: its example is what nvlink made."""

from __future__ import annotations

import re
from pathlib import Path

from pylink.inspect.image import Image

ROOT = Path(__file__).parents[2]
CASE = "tests/golden/80/weak"


def test_the_example_names_every_symbol() -> None:
    page = (ROOT / "docs" / "order.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d, ]+) \| (`.+?`) \|", page.split(CASE)[1], re.MULTILINE)
    numbers = [int(number) for row, _ in rows for number in row.split(", ")]
    names = [name for _, row in rows for name in re.findall("`(.+?)`", row)]
    image = Image((ROOT / CASE / "exec.nvlink.cubin").read_bytes())
    assert numbers == list(range(1, len(image.symbols)))
    assert names == image.symbols[1:]
