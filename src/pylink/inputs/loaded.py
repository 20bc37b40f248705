"""What loading the inputs ends with, for `phases/load.py` and for what takes inputs apart."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.inputs.contents import DeviceContents
    from pylink.inputs.pieces import Piece
    from pylink.inputs.references import References
    from pylink.inputs.sharedlib import Libraries
    from pylink.inputs.sources import Sources
    from pylink.phases.init import Job


class Contents:
    """The sources of a link, its shared libraries, and what is in both.

    `faults` has a FaultRow for each source that is damaged.
    """

    __slots__ = ("contents", "faults", "libraries", "sources")

    def __init__(
        self, contents: DeviceContents, faults: bytes, libraries: Libraries | None
    ) -> None:
        self.sources = contents.sources
        self.contents = contents
        self.faults = faults
        self.libraries = libraries


class OpenedInputs:
    """All sources of a link, what is in them, its shared libraries, and which sources have code for
    it.

    `with_code` has the numbers of those.
    """

    __slots__ = ("contents", "libraries", "sources", "with_code")

    def __init__(
        self,
        sources: Sources,
        contents: DeviceContents,
        libraries: Libraries | None,
        with_code: set[int],
    ) -> None:
        self.sources = sources
        self.contents = contents
        self.libraries = libraries
        self.with_code = with_code


class Candidates:
    """What a link could have taken: `loaded` before any choice among the sources of `opened`."""

    __slots__ = ("loaded", "opened")

    def __init__(self, loaded: Loaded, opened: OpenedInputs) -> None:
        self.loaded = loaded
        self.opened = opened


class Loaded:
    """The cubins of the link: `arena` holds their bytes, `extents` has a row (offset, size) each.

    `names` are what diagnostics call them. `homes` has the number of the source that each is from,
    nothing for a link of plain cubins; `modules` are LTO-IR pieces, which
    become one more cubin, and `opened` is what that one is linked with. `references` are the
    kernels that host code uses, None unless all others are removed. `registered` is what
    --register-link-binaries lists, names of files and with True module ids, where it is not all
    inputs. `libraries` are the shared libraries with device code, if there are any; with them
    `candidates` is what the link could have taken, until that is looked through.
    """

    __slots__ = (
        "arena",
        "candidates",
        "extents",
        "homes",
        "job",
        "libraries",
        "modules",
        "names",
        "opened",
        "references",
        "registered",
    )

    def __init__(
        self,
        job: Job,
        names: list[str],
        arena: bytes,
        extents: bytes,
        *,
        homes: list[int] | None = None,
        modules: list[Piece] | None = None,
        references: References | None = None,
    ) -> None:
        self.job = job
        self.names = names
        self.arena = arena
        self.extents = extents
        self.homes = homes or []
        self.modules = modules or []
        self.opened: OpenedInputs | None = None
        self.references = references
        self.registered: list[tuple[str, bool]] | None = None
        self.libraries: Libraries | None = None
        self.candidates: Candidates | None = None
