"""The results of the phases read, merge and layout: tables, and fields that kernels do not need.

This module is below the phases, so code that reads results does not import them.
"""

from __future__ import annotations

from pylink._native.results import MergedTables, ObjectTables, PlacedTables
from pylink.facts.releases import release_to_follow
from pylink.facts.rownumbers import LinkMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink._native.tables import Blob, Files, Sections, Spans, Symbols
    from pylink.facts.releases import Release
    from pylink.inputs.loaded import Loaded
    from pylink.inputs.references import References
    from pylink.inputs.sharedlib import Libraries
    from pylink.mercury.decisions import Folding
    from pylink.phases.init import Job
    from pylink.rows import FileRow


class Objects(ObjectTables):
    """The inputs: `arena` holds their bytes, the tables describe them.

    By file, `names` has the inputs' names, and `source_numbers` the number of the input or archive
    member that contained the file; `source_numbers` is empty for a link of plain cubins.
    `references` has patterns for the kernels and variables that host code uses, None if host code
    does not select kernels. `libraries` are the shared libraries with device code, if any. `places`
    caches source lines for diagnostics. `release` is the nvlink release that the output reproduces.
    """

    UNSEALED = ("places",)  # attributes that may be set after `seal`
    __slots__ = ("job", "libraries", "names", "places", "references", "release", "source_numbers")

    def __init__(
        self,
        arena: bytes,
        files: Files,
        sections: Sections,
        symbols: Symbols,
        *,
        job: Job,
        names: list[str],
        source_numbers: list[int],
        references: References | None,
        release: Release,
        libraries: Libraries | None,
    ) -> None:
        mode = job.mode | (LinkMode.HOST_INFO if references is not None else 0)
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
        self.source_numbers = source_numbers
        self.references = references
        self.release = release
        self.libraries = libraries
        self.places: object = None

    def replace(
        self,
        *,
        arena: bytes | None = None,
        files: Files | None = None,
        sections: Sections | None = None,
        symbols: Symbols | None = None,
        job: Job | None = None,
    ) -> Objects:
        """Return a copy of the inputs in which tables are replaced, like `dataclasses.replace`."""
        result = Objects(
            self.arena if arena is None else arena,
            self.files if files is None else files,
            self.sections if sections is None else sections,
            self.symbols if symbols is None else symbols,
            job=job or self.job,
            names=self.names,
            source_numbers=self.source_numbers,
            references=self.references,
            release=self.release,
            libraries=self.libraries,
        )
        return result.seal()


class Merged(MergedTables):
    """The sections and symbols of the output.

    `replacements` has contents that replace those of inputs, and the output's sections that they
    belong to. `folding` is the comparison of Mercury sections, None unless observers or -edbg need
    it. `exceeds_registers` says that a kernel reaches a function with more registers than its
    limit, `undefined` has the entities that an executable lacks. Layout reports both; merge reports
    `undefined` if the link ends there.
    """

    __slots__ = ("exceeds_registers", "folding", "replacements", "undefined")

    objects: Objects

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.replacements: list[tuple[Blob, Spans]] = []
        self.folding: Folding | None = None
        self.exceeds_registers = False
        self.undefined: list[int] = []

    def replace_sections(self, sections: Sections) -> None:
        """Link these input sections instead of the present ones, if they differ."""
        if sections is not self.objects.sections:
            self.objects = self.objects.replace(sections=sections)


class Placed(PlacedTables):
    """The layout of the output: values, indices, sizes and file offsets."""

    __slots__ = ()

    merged: Merged


def make_objects(
    loaded: Loaded, files: Files, sections: Sections, symbols: Symbols, changed: Sequence[FileRow]
) -> Objects:
    """Return `Objects` of parsed tables, not sealed yet: columns can still change.

    `changed` has the rows of the first file, and at least of each file whose toolkit, target or
    flags differ from the previous file's. The newest toolkit in them decides which release the link
    follows.
    """
    newest, patch = max(((row.toolkit, row.patch) for row in changed), default=(0, 0))
    return Objects(
        loaded.arena,
        files,
        sections,
        symbols,
        job=loaded.job,
        names=loaded.names,
        source_numbers=loaded.source_numbers,
        references=loaded.references,
        release=release_to_follow(loaded.job.options.nvlink, newest, patch),
        libraries=loaded.libraries,
    )
