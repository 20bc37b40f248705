"""Links of a feature program with nvlink and with pylink, and what differs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from differential import check
from differential.cases import Case, Expected, record_link
from differential.features.table import PTX_VERSION, Row, Source
from differential.variants import Link, device_runtime_options
from helpers import oracle
from helpers.keywords import KEYWORDS

# A kind of link: options, whether the files are turned round, the number of stages with -r before.
KINDS: Mapping[str, tuple[tuple[str, ...], bool, int]] = {
    "exec": ((), False, 0),
    "order": ((), True, 0),
    "r": (("-r",), False, 0),
    "relink": ((), False, 1),
    "third": ((), False, 2),
    "preserve": (("--preserve-relocs",), False, 0),
    "g": (("-g",), False, 0),
    "verbose": (("-v",), False, 0),
}

# From 13.1 on any number where a kernel has no record: docs/nvlink-differences.md.
BARRIERS = re.compile(r"used \d+ barriers")

# Debug data that is there twice is another test's.
OWN = ("--merc-dedup=off",)

# Flags that nvcc hands on; those behind `-Xptxas=` are for ptxas alone.
FOR_PTXAS = ("-G", "-lineinfo", "-O", "-maxrregcount")
ALONE = "-Xptxas="


def _compile(source: Source, chip: str, release: str, name: str) -> tuple[str, bytes]:
    """The suffix of what a compiler makes of one file, and its content."""
    text = source.text_for(chip, PTX_VERSION[release])
    front = [flag for flag in source.flags if not flag.startswith(ALONE)]
    back = [flag for flag in source.flags if flag.startswith((*FOR_PTXAS, ALONE))]
    if source.kind == "host":
        return "o", oracle.compile_host(text, chip, source.flags, name=name)
    if source.kind == "whole":
        return "cubin", oracle.compile_whole(text, chip, source.flags)
    if source.kind == "cu":
        # What an "a" or "f" adds is in no PTX for the plain chip.
        virtual = chip if chip[-1] in "af" else oracle.PTX_ARCH[chip]
        text = oracle.compile_ptx(text, virtual, front, name=name)
    return "cubin", oracle.assemble(text, chip, [flag.removeprefix(ALONE) for flag in back])


def compiled(row: Row, chip: str, release: str, folder: Path) -> tuple[str, ...]:
    """Write the objects of a row; their names."""
    names = []
    for number, source in enumerate(row.sources):
        suffix = "ptx" if source.kind == "ptx" else "cu"
        made, image = _compile(source, chip, release, f"m{number}.{suffix}")
        names.append(f"m{number}.{made}")
        (folder / names[-1]).write_bytes(image)
    return tuple(names)


def _link(row: Row, kind: str, chip: str, names: tuple[str, ...]) -> Link | None:
    options, turned, stages = KINDS[kind]
    if turned and len(names) == 1:
        return None
    given = tuple(each for word in row.link for each in _words(word))
    before: list[tuple[str, Link]] = []
    for stage in range(stages):
        before.append((f"stage{stage}.cubin", Link(names, ("-r",), chip)))
        names = (before[-1][0],)
    names = names[::-1] if turned else names
    return Link(names, (*options, *given), chip, tuple(before))


def _words(word: str) -> tuple[str, ...]:
    return device_runtime_options() if word == "cudadevrt" else (word,)


def differences(
    row: Row, kind: str, chip: str, names: tuple[str, ...], folder: Path
) -> list[str] | None:
    """What differs in one link of compiled files; None where there is no such link."""
    link = _link(row, kind, chip, names)
    entry = link and record_link(folder, kind, link)
    if not link or not entry:
        return None
    image, code = entry["image"], entry["code"]
    expected = Expected(kind, link, code, image, entry["stdout"], entry["stderr"])
    known = {option.partition("=")[0] for option in link.options} <= set(KEYWORDS)
    case = Case(folder, chip, (expected,))
    if known and kind != "verbose":
        return check.check_api(case, expected, own=OWN)
    newer = oracle.current() != oracle.DEFAULT
    return check.check_cli(case, expected, own=OWN, unknown=BARRIERS if newer else None)
