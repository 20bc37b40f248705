"""What host objects say beyond their device code: module ids, and the kernels that they use.

The compiler lists in a host object the kernels that its host code names: `.nvHRKE` those visible
to other files, `.nvHRKI` the others, which have names of their own. `.nvHRDE`, `.nvHRDI`, `.nvHRCE`
and `.nvHRCI` list device and constant variables in the same way. An asterisk in a name stands for
any characters.
"""

from __future__ import annotations

from pylink._native import fatbin
from pylink.inputs.kinds import FATBIN, OF_HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.inputs.contents import DeviceContents


class References:
    """Patterns for the kernels that host code uses: `external` for global names, or `internal`.

    `variables` are those for variables, of both kinds.
    """

    __slots__ = ("external", "internal", "variables")

    def __init__(
        self, external: list[bytes], internal: list[bytes], variables: list[bytes]
    ) -> None:
        self.external = external
        self.internal = internal
        self.variables = variables


def host_references(numbers: list[int], contents: DeviceContents) -> References | None:
    """The kernels that the host code of these sources uses, None when that is not known.

    One source without a list is enough not to know it, and so are lists without any name. Linkers
    of the host may have thrown away lists of a shared library, never its code: its lists count when
    they are long enough for the code, and a library of which nothing is linked does not.
    """
    sources = contents.sources
    if bytes(map(sources.kinds.__getitem__, numbers)).translate(None, bytes(OF_HOST)):
        return None
    libraries = sources.libraries
    if libraries:
        numbers = [
            number for number in numbers if number not in libraries or contents.containers(number)
        ]
        for number in numbers:
            if number in libraries and not contents.lists_hold(number, libraries[number].modules):
                return None
    collected = fatbin.collect_names(sources.arenas, bytes(sources.homes), contents.rows, numbers)
    if collected is None:
        return None
    external, internal, variables = collected
    if not external and not internal:
        return None
    return References(list(external), list(internal), list(variables))


def variable_patterns(contents: DeviceContents, numbers: Iterable[int]) -> list[bytes] | None:
    """Patterns for all variables that the host code of these sources names; None if not known."""
    wanted = list(numbers)
    if not all(contents.lists_hold(number, contents.containers(number)) for number in wanted):
        return None
    sources = contents.sources
    collected = fatbin.collect_names(sources.arenas, bytes(sources.homes), contents.rows, wanted)
    return None if collected is None else list(collected[2])


def identifiers(
    numbers: Sequence[int], contents: DeviceContents, with_code: set[int]
) -> list[tuple[str, bool]]:
    """What --register-link-binaries lists: module ids with True, names of files with False.

    A host object counts even without code for the target, a fat binary if it is among those
    `with_code` some.
    """
    kinds = contents.sources.kinds
    if FATBIN in kinds:
        numbers = [n for n in numbers if kinds[n] != FATBIN or n in with_code]
    return contents.all_listed(numbers)
