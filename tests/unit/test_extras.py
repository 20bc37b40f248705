"""What to install for an optional package: its name on the index, and an extra that has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pylink.packages.extras import EXTRAS, PACKAGES, install_advice

PROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", sorted({*EXTRAS, *PACKAGES, "numpy", "rich"}))
def test_the_extra_has_the_package(module: str) -> None:
    said = re.fullmatch(
        r"this needs the package (\S+): pip install 'pylink-cuda\[(\S+)\]'",
        install_advice(f"{module}.part"),
    )
    assert said is not None
    package, extra = said.groups()
    # What every installation has counts as well.
    lists = re.findall(rf"^(?:{extra}|dependencies) = \[(.*?)\]$", PROJECT, re.M | re.S)
    assert len(lists) == 2
    assert f'"{package}'.lower() in " ".join(lists).lower()
