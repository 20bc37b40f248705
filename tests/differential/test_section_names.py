"""Sections under other names or with other types: linked as nvlink does, or refused with a reason.

nvlink tells sections by type. A linker that goes by name drops what it does not know and says
nothing, so each section of some recorded programs gets another name, or another type.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.section_names import renamed, section_rows, with_section

import pylink

GOLDEN = Path(__file__).parents[1] / "golden"
LINKS = [
    ("80/shared", False),
    ("80/weak", True),
    ("90a/calls", False),
    ("90a/switches", True),
    ("100/calls", False),
    ("100/switches", True),
    ("100/debug", False),
]
# As many of all changes are tried: every one of so many, which turns with the link.
STEP = 3
UNKNOWN_TYPES = (5, 17, 0x60000001, 0x70000004, 0x7000000E, 0x70000020, 0x80000001)


def link(inputs: list[bytes], arch: str, relocatable: bool, folder: Path) -> bytes | str:
    """pylink's image, or what it says instead."""
    log = io.StringIO()
    names = [f"m{i}.cubin" for i in range(len(inputs))]
    for name, image in zip(names, inputs, strict=True):
        (folder / name).write_bytes(image)
    before = Path.cwd()
    os.chdir(folder)
    try:
        result = pylink.link(names, arch=f"sm_{arch}", relocatable_link=relocatable, log=log)
    except pylink.LinkError:
        return log.getvalue()
    finally:
        os.chdir(before)
    return bytes(result.image)


def modules(case: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((GOLDEN / case).glob("m*.cubin"))]


@oracle.needs_oracle
@pytest.mark.parametrize(("case", "relocatable"), LINKS)
def test_a_section_under_another_name(case: str, relocatable: bool, tmp_path: Path) -> None:
    arch = case.partition("/")[0]
    inputs = modules(case)
    untouched = link(inputs, arch, relocatable, tmp_path)
    changes = [(at, *change) for at, image in enumerate(inputs) for change in renamed(image)]
    linked = refused = 0
    for at, name, other, image in changes[len(case) % STEP :: STEP]:
        files = [*inputs[:at], image, *inputs[at + 1 :]]
        ours = link(files, arch, relocatable, tmp_path)
        if isinstance(ours, str):
            assert f"m{at}.cubin" in ours, (name, other)
            refused += 1
            continue
        theirs = oracle.link(files, arch, ["-r"] if relocatable else [])
        linked += 1
        if theirs.code:  # its finalizer does not survive every name
            assert ours == untouched, (name, other)
        else:
            assert theirs.image is not None
            assert compare(ours, theirs.image) == [], (name, other)
    assert linked > 5
    assert refused > 5


@pytest.mark.parametrize("case", ["80/shared", "90a/calls", "100/calls"])
def test_a_section_of_an_unknown_type(case: str, tmp_path: Path) -> None:
    inputs = modules(case)
    rows, names = section_rows(inputs[0])
    for section, name in enumerate(names):
        if not name or name in (b".shstrtab", b".strtab"):
            continue
        changed = with_section(inputs[0], section, type=UNKNOWN_TYPES[section % len(UNKNOWN_TYPES)])
        said = link([changed, *inputs[1:]], case.partition("/")[0], False, tmp_path)
        assert isinstance(said, str), name
        assert f"m0.cubin: {name.decode()}: section of unknown type" in said, rows[section]
