"""A naive reference of the order of nvlink's output, written from docs/order.md.

It reads inputs once, builds everything, dead or alive, and writes names at the end. It knows
nothing of values, attributes and contents, nor of `-g`, `--preserve-relocs` and host information.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from helpers.order.ending import Ending
from helpers.order.finalizer import finalize
from helpers.order.reader import Input


@dataclass(frozen=True)
class Order:
    """Names in the order of their numbers: `sections` and `symbols` begin with number 0."""

    sections: list[str]
    shstrtab: bytes
    strtab: bytes
    symbols: list[str]


def predict(
    cubins: Sequence[bytes],
    arch: str,
    *,
    relocatable: bool = False,
    selected: Callable[[str], bool] = lambda name: True,
) -> Order:
    """The order of the link of `cubins` for sm_`arch`; `selected` kernels are roots."""
    link = read(cubins, arch, relocatable=relocatable, selected=selected)
    link.finish()
    lists = link.lists
    shstrtab, strtab = lists.section_names(), lists.symbol_names(link.prototypes)
    symbols = lists.shown_symbols()
    if link.family == "C":
        return Order(*finalize(lists, shstrtab, strtab, symbols))
    names = ["", *(section.name for section in lists.in_file_order())]
    return Order(names, shstrtab, strtab, symbols)


def read(
    cubins: Sequence[bytes],
    arch: str,
    *,
    relocatable: bool = False,
    selected: Callable[[str], bool] = lambda name: True,
) -> Ending:
    """The lists when all inputs are read."""
    files = [Input(cubin) for cubin in cubins]
    link = Ending(family_of(arch), relocatable, selected, files)
    for file in files:
        link.open(file)
    for file in files:
        link.read(file)
    return link


def selection(options: Sequence[str]) -> Callable[[str], bool]:
    """Which kernels --kernels-used makes roots."""
    lists = [o.partition("=")[2] for o in options if o.startswith("--kernels-used=")]
    items = [item for text in lists for item in text.split(",") if item]
    patterns = [re.compile(".*".join(map(re.escape, item.split("*")))) for item in items]
    return lambda name: not patterns or any(pattern.search(name) for pattern in patterns)


def difference(predicted: Order, found: Order) -> str:
    """The first place where two orders differ, in words; empty when they are equal."""
    for field in ("sections", "shstrtab", "strtab", "symbols"):
        mine, theirs = getattr(predicted, field), getattr(found, field)
        if mine != theirs:
            if isinstance(mine, bytes):
                mine, theirs = mine.split(b"\0"), theirs.split(b"\0")
            pairs = enumerate(zip(mine, theirs, strict=False))
            at = next((i for i, (a, b) in pairs if a != b), min(len(mine), len(theirs)))
            return f"{field}[{at}]: predicted {mine[at : at + 1]}, found {theirs[at : at + 1]}"
    return ""


def observe(image: bytes) -> Order:
    """The order that a linked image has."""
    linked = Input(image, linked=True)
    return Order(
        [part.name for part in linked.parts],
        linked.parts[1].data,
        linked.strings,
        [mention.name for mention in linked.mentions],
    )


def family_of(arch: str) -> str:
    number = int("".join(digit for digit in arch if digit.isdigit()))
    return "A" if number < 90 else "B" if number < 100 else "C"
