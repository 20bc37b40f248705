"""Host objects' lists of modules to register, and of kernels and variables that host code uses.

The compiler lists in a host object the kernels that its host code names: in `.nvHRKE` the ones that
are visible to other files, in `.nvHRKI` the others, which have unique names. `.nvHRDE`, `.nvHRDI`,
`.nvHRCE` and `.nvHRCI` list device and constant variables in the same way. An asterisk in a name
stands for any characters.
"""

from __future__ import annotations

from pylink._native import fatbin
from pylink.facts.inputkinds import FATBIN
from pylink.inputs.kinds import OF_HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.inputs.contents import DeviceContents


class References:
    """Patterns for the kernels that host code uses: with global (`external`) or `internal` names.

    `variables` has the patterns for variables with names of either sort.
    """

    __slots__ = ("external", "internal", "variables")

    def __init__(
        self, external: list[bytes], internal: list[bytes], variables: list[bytes]
    ) -> None:
        self.external = external
        self.internal = internal
        self.variables = variables


def host_references(numbers: list[int], contents: DeviceContents) -> References | None:
    """Return the kernels that the host code of these sources uses; None if not known.

    `numbers` are the sources. The kernels are not known if one source is not a host file with
    device code and a list of kernels with global names, or if no list names a kernel. Host linkers
    may have dropped some lists of a shared library, but never its code. So the kernels are not
    known either if its lists are too short for its number of modules. A library of which nothing is
    linked is ignored.
    """
    sources = contents.sources
    if bytes(map(sources.kinds.__getitem__, numbers)).translate(None, bytes(OF_HOST)):
        return None
    libraries = sources.libraries
    if libraries:
        numbers = [
            number
            for number in numbers
            if number not in libraries or contents.container_count(number)
        ]
        for number in numbers:
            if number in libraries and not contents.has_complete_lists(
                number, libraries[number].modules
            ):
                return None
    collected = fatbin.collect_names(
        sources.arenas, bytes(sources.arena_numbers), contents.rows, numbers
    )
    if collected is None:
        return None
    external, internal, variables = collected
    if not external and not internal:
        return None
    return References(list(external), list(internal), list(variables))


def variable_patterns(
    contents: DeviceContents, source_numbers: Iterable[int]
) -> list[bytes] | None:
    """Return patterns for the variables that host code of these sources names; None if unknown."""
    numbers = list(source_numbers)
    if not all(
        contents.has_complete_lists(number, contents.container_count(number)) for number in numbers
    ):
        return None
    sources = contents.sources
    collected = fatbin.collect_names(
        sources.arenas, bytes(sources.arena_numbers), contents.rows, numbers
    )
    return None if collected is None else list(collected[2])


def list_registered_names(
    numbers: Sequence[int], contents: DeviceContents, with_code: set[int]
) -> list[tuple[str, bool]]:
    """Return the list for --register-link-binaries: module ids with True, file names with False.

    A host object is listed even without code for the target, a fat binary only if it is in
    `with_code`.
    """
    kinds = contents.sources.kinds
    if FATBIN in kinds:
        numbers = [n for n in numbers if kinds[n] != FATBIN or n in with_code]
    return contents.all_registered(numbers)
