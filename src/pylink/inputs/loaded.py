"""The results of loading: sources of a link, and the arena with its cubins."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.inputs.compileinputs import CompileInput
    from pylink.inputs.contents import DeviceContents
    from pylink.inputs.references import References
    from pylink.inputs.sharedlib import Libraries
    from pylink.inputs.sources import Sources
    from pylink.phases.init import Job


class ScannedInputs:
    """The sources of a link, its shared libraries, and the device code in both.

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
    """All sources of a link, their device code, and its shared libraries.

    `with_code` has the numbers of the sources with code for the target.
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
    """All that a link could take: `loaded` has the cubins of all sources in `opened`."""

    __slots__ = ("loaded", "opened")

    def __init__(self, loaded: Loaded, opened: OpenedInputs) -> None:
        self.loaded = loaded
        self.opened = opened


class Loaded:
    """The cubins of the link: `arena` holds their bytes, `extents` has a row (offset, size) each.

    `names` are used in diagnostics. `source_numbers` has the source of each cubin; it is empty for
    a link of plain cubins. `modules` are LTO-IR modules, which become one more cubin, and `opened`
    has the sources that this cubin is linked with. `references` are the kernels that host code
    uses, None if all kernels are kept. `registered` lists the module ids (True) and file names
    (False) for --register-link-binaries, None for the names of all inputs. `libraries` are the
    shared libraries with device code. `candidates` is what the link could have taken, which is
    needed until modules have been borrowed (`phases/borrow.py`).
    """

    __slots__ = (
        "arena", "candidates", "extents", "job", "libraries", "modules", "names", "opened",
        "references", "registered", "source_numbers",
    )  # fmt: skip

    def __init__(
        self,
        job: Job,
        names: list[str],
        arena: bytes,
        extents: bytes,
        *,
        source_numbers: list[int] | None = None,
        modules: list[CompileInput] | None = None,
        references: References | None = None,
    ) -> None:
        self.job = job
        self.names = names
        self.arena = arena
        self.extents = extents
        self.source_numbers = source_numbers or []
        self.modules = modules or []
        self.opened: OpenedInputs | None = None
        self.references = references
        self.registered: list[tuple[str, bool]] | None = None
        self.libraries: Libraries | None = None
        self.candidates: Candidates | None = None
