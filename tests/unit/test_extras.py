"""What to install for an optional package: its name on the index, and an extra that has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pylink.packages.extras import EXTRAS, PACKAGES, REQUIRED, install_advice

PROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("module", "named"),
    [*((name, "") for name in sorted({*EXTRAS, *PACKAGES, "numpy", "rich"})), ("google", "worker")],
)
def test_the_extra_has_the_package(module: str, named: str) -> None:
    said = re.fullmatch(
        r"this needs the package (\S+): pip install 'pylink-cuda\[(\S+)\]'",
        install_advice(f"{module}.part", extra=named),
    )
    assert said is not None
    package, extra = said.groups()
    assert extra == named or not named
    # What every installation has counts as well.
    lists = re.findall(rf"^(?:{extra}|dependencies) = \[(.*?)\]$", PROJECT, re.M | re.S)
    assert len(lists) == 2
    assert f'"{package}'.lower() in " ".join(lists).lower()


def test_a_package_that_is_always_required_is_in_no_extra() -> None:
    required = re.findall(r"^dependencies = \[(.*?)\]$", PROJECT, re.M | re.S)[0]
    assert re.findall(r'"(\w+)', required) == list(REQUIRED)
    assert install_advice("lz4.frame") == "this needs the package lz4: pip install lz4"


# Extras for people who develop pylink.
FOR_DEVELOPERS = {"build", "constraints", "gpu", "oracle", "site", "test", "wheels"}


def test_the_page_of_installation_names_all_extras_for_users() -> None:
    extras = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    defined = set(re.findall(r"^([\w-]+) = \[", extras, re.M))
    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text(encoding="utf-8")
    table = page.partition("## Extras\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"pylink-cuda\[([\w-]+)\]`", table))
    assert named == defined - FOR_DEVELOPERS
