"""Objects of each release, linked by each later one, from sm_100 on: what the finalizer changes.

A row is an object's release, a linker's release and a chip. Each links code that was compiled
plainly, with -G and with -O0: in one stage, with -r, in two stages and with -g. `ROWS` are those of
the releases at hand: `make test` has 13.0 and 13.5, `make test-releases` all.

Code that was not optimized equals nvlink's in every byte. So does optimized code, unless the linker
makes a new schedule of it (`RESCHEDULED`): such rows have a source without what that concerns.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from helpers import older, older_sources, oracle
from helpers.compare import compare

import pylink
from pylink.facts import releases

CHIPS = ("100", "103", "110", "120", "121")
PATCH_CHIPS = ("100", "120")
EARLY_CHIPS = ("100", "103", "120", "121")  # of 12.9
# What links do to a file: keywords, and whether it is the second of two.
LINKS: dict[str, tuple[dict[str, Any], bool]] = {
    "exec": ({}, False),
    "r": ({"relocatable_link": True}, False),
    "relink": ({}, True),
    "g": ({"debug": True}, False),
}
OPTIONS = {"relocatable_link": "-r", "debug": "-g"}
UNSCHEDULED = {"-G": ("-G",), "-O0": ("-O0",)}
SCHEDULED: dict[str, tuple[str, ...]] = {"plain": (), "lineinfo": ("-lineinfo",)}
# Differences in these make a new schedule, on the chips that they concern.
RESCHEDULED = {
    releases.TRAIT_SHORT_ADDS: CHIPS,
    releases.TRAIT_FP64_SCOREBOARDS: ("100",),
    releases.TRAIT_FP64_UNPADDED: ("103", "110", "120", "121"),
}

AT_HAND = [*oracle.by_library(), oracle.DEFAULT, *oracle.others(), *oracle.patches()]


def row_of(name: str) -> releases.Release:
    """What pylink calls the release of a toolchain."""
    found = releases.release_named(oracle.VERSIONS.get(name, name))
    assert found is not None
    return found


def rows() -> list[tuple[str, str, str]]:
    """Release of the object, release of the linker, chip: all that are at hand."""
    found = []
    for made, linker in itertools.product(AT_HAND, AT_HAND):
        if linker in oracle.BY_LIBRARY or row_of(made).toolkit > row_of(linker).toolkit:
            continue
        patched = made in oracle.PATCHES or linker in oracle.PATCHES
        chips = EARLY_CHIPS if made in oracle.BY_LIBRARY else PATCH_CHIPS if patched else CHIPS
        found += [(made, linker, chip) for chip in chips]
    return found


ROWS = rows()
pytestmark = oracle.needs_oracle


def expected_to_differ(difference: str, linker: str, made: str, kind: str, chip: str) -> bool:
    """With -r nvlink 13.5 gives records of older objects numbers of other symbols.

    On sm_110 with -g it gives lines behind a barrier to another instruction, of its own objects,
    too (docs/nvlink-differences.md).
    """
    if chip == "110" and kind == "g":
        return "debug_line" in difference
    return (
        row_of(linker).name == "13.5"
        and row_of(made).name != "13.5"
        and kind == "r"
        and "nv.info[" in difference
        and "EIATTR_MAX_STACK_SIZE" in difference
    )


def differences(
    source: str, flags: tuple[str, ...], made: str, linker: str, chip: str, folder: Path
) -> list[str]:
    """What differs in each kind of link of a source, nvlink's outputs against pylink's."""
    ptx = oracle.compile_ptx(
        source, oracle.PTX_ARCH[chip], [flag for flag in flags if flag == "-G"]
    )
    image = older.assemble(ptx, chip, flags, made)
    found = []
    with oracle.release(linker):
        for kind, (keywords, second) in LINKS.items():
            if second:
                first = oracle.link([image], chip, ["-r"]).image
                assert first is not None
            (folder / "in.cubin").write_bytes(first if second and first else image)
            options = [OPTIONS[keyword] for keyword in keywords]
            argv = [f"-arch=sm_{chip}", *options, "in.cubin", "-o", "out.nvlink"]
            theirs = oracle.run_nvlink(argv, folder, "out.nvlink")
            assert theirs.image is not None, theirs.stderr
            ours = pylink.link(
                [folder / "in.cubin"],
                arch=f"sm_{chip}",
                nvlink_version=row_of(linker).name,  # type: ignore[arg-type]
                **keywords,
            )
            found += [
                f"{kind}: {difference}"
                for difference in compare(bytes(ours.image), theirs.image)
                if not expected_to_differ(difference, linker, made, kind, chip)
            ]
    return found


@pytest.mark.parametrize(("made", "linker", "chip"), ROWS)
@pytest.mark.parametrize("flavor", UNSCHEDULED)
def test_code_that_was_not_optimized_is_that_of_the_linker(
    made: str, linker: str, chip: str, flavor: str, tmp_path: Path
) -> None:
    source = older_sources.EVERYTHING
    assert differences(source, UNSCHEDULED[flavor], made, linker, chip, tmp_path) == []


@pytest.mark.parametrize(("made", "linker", "chip"), ROWS)
@pytest.mark.parametrize("flavor", SCHEDULED)
def test_optimized_code_is_that_of_the_linker(
    made: str, linker: str, chip: str, flavor: str, tmp_path: Path
) -> None:
    apart = row_of(made).traits ^ row_of(linker).traits
    kept = any(apart & trait and chip in chips for trait, chips in RESCHEDULED.items())
    kept = kept or made in oracle.BY_LIBRARY  # docs/older-objects.md: stall counts of before 13.0
    source = older_sources.DIVERGENCE if kept else older_sources.EVERYTHING
    assert differences(source, SCHEDULED[flavor], made, linker, chip, tmp_path) == []
