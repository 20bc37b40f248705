"""A naive reference of the order of nvlink's output, written from docs/order.md.

It reads the inputs once, creates everything, dead or alive, and writes names at the end. It ignores
values, attributes and contents, and also `-g`, `--preserve-relocs` and host information.
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
    """The names of a file in order of their numbers.

    `sections` and `symbols` begin with number 0.
    """

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
    """Return the order of a link of `cubins` for sm_`arch`.

    Kernels for which `selected` is true are roots.
    """
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
    """Return the lists after all inputs were read."""
    files = [Input(cubin) for cubin in cubins]
    link = Ending(family_of(arch), relocatable, selected, files)
    for file in files:
        link.open(file)
    for file in files:
        link.read(file)
    return link


def selection(options: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that says whether --kernels-used makes a kernel a root."""
    lists = [o.partition("=")[2] for o in options if o.startswith("--kernels-used=")]
    items = [item for text in lists for item in text.split(",") if item]
    patterns = [re.compile(".*".join(map(re.escape, item.split("*")))) for item in items]
    return lambda name: not patterns or any(pattern.search(name) for pattern in patterns)


def difference(predicted: Order, actual: Order) -> str:
    """Return the first difference of two orders as text; empty if they are equal."""
    for field in ("sections", "shstrtab", "strtab", "symbols"):
        predicted_names, actual_names = getattr(predicted, field), getattr(actual, field)
        if predicted_names != actual_names:
            if isinstance(predicted_names, bytes):
                predicted_names, actual_names = (
                    predicted_names.split(b"\0"),
                    actual_names.split(b"\0"),
                )
            pairs = enumerate(zip(predicted_names, actual_names, strict=False))
            at = next(
                (i for i, (a, b) in pairs if a != b), min(len(predicted_names), len(actual_names))
            )
            names = f"predicted {predicted_names[at : at + 1]}, found {actual_names[at : at + 1]}"
            return f"{field}[{at}]: {names}"
    return ""


def observe(image: bytes) -> Order:
    """Return the order in a linked image."""
    linked = Input(image, linked=True)
    return Order(
        [part.name for part in linked.parts],
        linked.parts[1].data,
        linked.strings,
        [mention.name for mention in linked.mentions],
    )


def family_of(arch: str) -> str:
    """Return the family of an architecture such as 90a."""
    number = int("".join(digit for digit in arch if digit.isdigit()))
    return "A" if number < 90 else "B" if number < 100 else "C"
