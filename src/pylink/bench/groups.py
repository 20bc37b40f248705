"""Groups the inputs of a link that need one another, so that each group links alone.

A cubin needs the cubins that define its undefined symbols. Inputs that are connected in this way,
directly or through others, are a group. Any selection of groups links without the other groups.
"""

from __future__ import annotations

from pylink.facts.elf import SHN_UNDEF, STB_LOCAL
from pylink.facts.records import SYM
from pylink.inspect.image import Image, MalformedCubin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def groups_of(cubins: Sequence[bytes]) -> list[list[int]]:
    """Return the groups of cubins that need one another, in the order of their first cubins.

    A group is a list of indices in `cubins`. A cubin needs those that define its undefined symbols.
    An input that is not a readable cubin is a group of its own.
    """
    definers: dict[str, int] = {}  # the first cubin that defines each name
    needed: list[set[str]] = []  # by cubin: the names that it does not define
    for number, data in enumerate(cubins):
        undefined = set()
        for name, is_defined in _globals_of(data):
            if is_defined:
                definers.setdefault(name, number)
            else:
                undefined.add(name)
        needed.append(undefined)
    # By cubin: an earlier cubin of its group, or itself if it is the first (union-find).
    earlier_member = list(range(len(cubins)))

    def find_first(number: int) -> int:
        """Return the first cubin of the group that cubin `number` is in so far."""
        while earlier_member[number] != number:
            earlier_member[number] = number = earlier_member[earlier_member[number]]
        return number

    for number, names in enumerate(needed):
        for name in names:
            if name in definers:
                first, other = sorted((find_first(number), find_first(definers[name])))
                earlier_member[other] = first
    groups: dict[int, list[int]] = {}
    for number in range(len(cubins)):
        groups.setdefault(find_first(number), []).append(number)
    return list(groups.values())


def _globals_of(data: bytes) -> list[tuple[str, bool]]:
    """Return the global names of a cubin, each with whether it is defined; none if unreadable."""
    try:
        image = Image(data)
        table = image.section(".symtab")
        rows = image.entries(table, SYM.format) if table is not None else []
        return [
            (name, shndx != SHN_UNDEF)
            for name, (_, info, _, shndx, _, _) in zip(image.symbols, rows, strict=True)
            if name and info >> 4 != STB_LOCAL
        ]
    except (MalformedCubin, ValueError):
        return []
