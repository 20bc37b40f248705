"""Code of outputs that differs from nvlink's, kept by comparisons, checked when a run ends.

`helpers.compare.compare` hands over each image. What differs from nvlink's code, be it in
scoreboards alone, has to stand for itself. A fixture in `conftest` asks for the hazards once, since
nvdisasm takes a fraction of a second to start. Only links of code that a compiler wrote are handed
over: tests of damaged or planted images use `image_differences`. Code that cannot be followed is
no finding here, `unfollowed` names it; `test_outputs` and `test_waits` fail for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from emulator.errors import BadImage
from helpers import oracle

from hazards import check, cubins, flow, sass, tables
from hazards.cubins import Function
from hazards.errors import Unfollowed


@dataclass(frozen=True)
class Noted:
    """A function that differs, and the test that met it first."""

    function: Function
    test: str


_noted: dict[str, dict[bytes, Noted]] = {}  # architecture -> code

unfollowed: list[str] = []  # functions that the last `findings` could say nothing of, and why


def note(actual: bytes, expected: bytes | None = None) -> None:
    """Keep the functions of one image that differ from those of the other; all if there is none."""
    try:
        ours = cubins.read(actual)
        theirs = {part.code for part in cubins.read(expected).functions} if expected else set()
    except BadImage:
        return  # the comparison says so
    if not tables.known(ours.arch):
        return
    found = _noted.setdefault(ours.arch, {})
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    for part in ours.functions:
        if part.code not in theirs:
            found.setdefault(part.code, Noted(part, test))


def findings() -> Iterator[str]:
    """The hazards in all that was kept, each with its test; what was kept is dropped."""
    kept = dict(_noted)
    _noted.clear()
    unfollowed.clear()
    if oracle.optional_tool("nvdisasm") is None:
        return
    for arch, functions in kept.items():
        table, decoder = tables.load(arch), sass.decoder(arch)
        with suppress(Unfollowed):  # one of them is not code: the others are learnt one by one
            decoder.learn(functions)
        for noted in functions.values():
            try:
                found = hazards(noted.function, decoder, table)
            except Unfollowed as error:
                unfollowed.append(f"sm_{arch}: {noted.function.name}: {error}")
                continue
            yield from (f"{noted.test}: sm_{arch}: {finding}" for finding in found)


def hazards(function: Function, decoder: sass.Decoder, table: tables.Table) -> list[check.Finding]:
    """The findings of one function but for stalls; Unfollowed if its code cannot be followed.

    A pair of instructions that was never seen so close may still be far enough.
    """
    decoder.learn([function.code])
    found = check.function(flow.build(function, decoder), table)
    return [finding for finding in found if finding.kind != "stall"]
