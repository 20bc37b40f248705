"""What the phases read, merge and layout end with: the tables, and what kernels need not know.

Below the phases, so that code that reads a result needs none of them.
"""

from __future__ import annotations

from pylink._native.tables import MergedTables, ObjectTables, PlacedTables
from pylink.phases.init import HOST_INFO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Files, Sections, Spans, Symbols
    from pylink.facts.releases import Release
    from pylink.inputs.references import References
    from pylink.inputs.sharedlib import Libraries
    from pylink.mercury.decisions import Folding
    from pylink.phases.init import Job


class Objects(ObjectTables):
    """The inputs: `arena` holds their bytes, the tables tell what is in it.

    `names` are the inputs' names by file number, `homes` the number of the source that each is
    from, nothing for a link of plain cubins. `references` are the kernels that host code uses,
    None unless all others are removed. `libraries` are the shared libraries with device code, if
    there are any. `places` are what diagnostics detected. `release` is that of the nvlink that the
    output is equal to.
    """

    UNSEALED = ("places",)
    __slots__ = ("homes", "job", "libraries", "names", "places", "references", "release")

    def __init__(
        self,
        arena: bytes,
        files: Files,
        sections: Sections,
        symbols: Symbols,
        *,
        job: Job,
        names: list[str],
        homes: list[int],
        references: References | None,
        release: Release,
        libraries: Libraries | None,
    ) -> None:
        mode = job.mode | (HOST_INFO if references is not None else 0)
        super().__init__(
            arena,
            files,
            sections,
            symbols,
            family=job.target.family,
            mode=mode,
            traits=release.traits,
        )
        self.job = job
        self.names = names
        self.homes = homes
        self.references = references
        self.release = release
        self.libraries = libraries
        self.places: object = None

    def replaced(
        self,
        *,
        arena: bytes | None = None,
        files: Files | None = None,
        sections: Sections | None = None,
        symbols: Symbols | None = None,
        job: Job | None = None,
    ) -> Objects:
        """The same inputs except for what is given."""
        result = Objects(
            self.arena if arena is None else arena,
            self.files if files is None else files,
            self.sections if sections is None else sections,
            self.symbols if symbols is None else symbols,
            job=job or self.job,
            names=self.names,
            homes=self.homes,
            references=self.references,
            release=self.release,
            libraries=self.libraries,
        )
        return result.seal()


class Merged(MergedTables):
    """What the output consists of; `made` has contents that replace those of the inputs.

    `folding` is how Mercury sections were compared, where somebody asked for it. `crowded` says
    whether a kernel calls a function with more registers than it may have, `undefined` has the
    entities that an executable lacks: both are reported when sizes are known.
    """

    __slots__ = ("crowded", "folding", "made", "undefined")

    objects: Objects

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.made: list[tuple[bytes, Spans]] = []
        self.folding: Folding | None = None
        self.crowded = False
        self.undefined: list[int] = []


class Placed(PlacedTables):
    """Where everything is."""

    __slots__ = ()

    merged: Merged
