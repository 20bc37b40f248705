"""What host objects say beyond their device code: module ids, and the kernels that they use.

The compiler lists in a host object the kernels that its host code names: `.nvHRKE` those visible
to other files, `.nvHRKI` the others, which have names of their own. `.nvHRDE`, `.nvHRDI`, `.nvHRCE`
and `.nvHRCI` list device and constant variables in the same way. An asterisk in a name stands for
any characters.
"""

from __future__ import annotations

import os

from pylink.inputs.kinds import FATBIN, OF_HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.inputs.pieces import Hosted, Source


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


def host_references(sources: list[Source], hosted: dict[Source, Hosted]) -> References | None:
    """The kernels that the host code of all sources uses, None when that is not known.

    One source without a list is enough not to know it, and so are lists without any name. Linkers
    of the host may have thrown away lists of a shared library, never its code: its lists count when
    they are long enough for the code, and a library of which nothing is linked does not.
    """
    external: dict[bytes, None] = {}
    internal: dict[bytes, None] = {}
    variables: dict[bytes, None] = {}
    for source in sources:
        found = hosted.get(source)
        if found is not None and source.library is not None:
            if not found.containers:
                continue
            if not found.lists_hold(source.library.modules):
                return None
        if found is None or source.kind not in OF_HOST or not found.containers:
            return None
        names = found.external
        if names is None:
            return None
        external.update(dict.fromkeys(names))
        internal.update(dict.fromkeys(found.internal or ()))
        variables.update(dict.fromkeys(found.variables))
    if not external and not internal:
        return None
    return References(list(external), list(internal), list(variables))


def identifiers(sources: list[Source], hosted: dict[Source, Hosted]) -> list[tuple[str, bool]]:
    """What --register-link-binaries lists: module ids with True, names of files with False.

    A host object counts even without code for the target, a fat binary does not.
    """
    listed: list[tuple[str, bool]] = []
    for source in sources:
        found = hosted.get(source)
        if found is None:
            listed.append((source.name, False))
        elif source.kind == FATBIN:
            listed += [(source.name, False)] * bool(found.pieces)
        elif found.containers and found.ids is None:
            listed.append((source.name, False))
        elif found.containers:
            listed += [(os.fsdecode(one), True) for one in found.ids or [b""]]
    return listed
