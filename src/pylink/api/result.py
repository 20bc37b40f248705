"""The result of a link."""

from __future__ import annotations

from pylink.diagnostics.errors import Diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import SupportsIndex

    from typing_extensions import Buffer

    from pylink.api.tables import InputRow, PhaseRow, RelocationRow, SectionRow, SizeRow, SymbolRow
    from pylink.diagnostics import Diagnostic
    from pylink.files.lazyfile import LazyFile
    from pylink.profile.model import Profile
    from pylink.remarks.rows import RemarkRow
    from pylink.tabular.table import Table


class LinkResult:
    """The result of a link: the linked image, and facts and tables about both."""

    __slots__ = (
        "_image", "_inputs", "_relocations", "_sections", "_sizes", "_symbols", "arch",
        "diagnostics", "profile", "timings",
    )  # fmt: skip

    arch: str
    """The architecture that was linked for, such as `sm_90a`."""
    diagnostics: Diagnostics
    """The diagnostics of the link, in order; none is an error, since the link succeeded.

    It is a tuple of records, and `diagnostics.table` has them with columns. A record whose place
    was not used yet keeps the inputs in memory; `del` of the result releases them.
    """
    timings: dict[str, float]
    """Milliseconds of each phase that ran after init, by its name."""
    profile: Profile | None
    """The profile of the link; None without the option `profile`."""

    def __init__(
        self,
        image: bytes | LazyFile,
        diagnostics: Iterable[Diagnostic],
        timings: dict[str, float],
        profile: Profile | None = None,
        *,
        arch: str = "",
        inputs: Sequence[tuple[str, int | None]] = (),
    ) -> None:
        self._image = image
        self.arch = arch
        self.diagnostics = Diagnostics(diagnostics)
        self.timings = timings
        self.profile = profile
        # The name and the size in bytes of each input; the size of a file is None, since it is not
        # read yet. The first use of `inputs` replaces this by a table.
        self._inputs: Sequence[tuple[str, int | None]] | Table[InputRow] = inputs
        self._relocations: Table[RelocationRow] | None = None
        self._sections: Table[SectionRow] | None = None
        self._symbols: Table[SymbolRow] | None = None
        self._sizes: Table[SizeRow] | None = None

    @property
    def image(self) -> bytes:
        """The linked file, also if it was written to a path; PTX with `emit_ptx`.

        A large written file is read at the first use; OSError if its contents were changed. It may
        have been replaced or removed.
        """
        if not isinstance(self._image, bytes):
            self._image = self._image.read()
        return self._image

    @property
    def sections(self) -> Table[SectionRow]:
        """A row for each section of the image, without the null one; read at the first use."""
        if self._sections is None:
            from pylink.api.tables import section_table

            self._sections = section_table(self.image)
        return self._sections

    @property
    def symbols(self) -> Table[SymbolRow]:
        """A row for each symbol of the image, without the null one; read at the first use."""
        if self._symbols is None:
            from pylink.api.tables import symbol_table

            self._symbols = symbol_table(self.image)
        return self._symbols

    @property
    def sizes(self) -> Table[SizeRow]:
        """The bytes of the image by part and function; counted at the first use.

        The sum of the rows is the size of the image. The rows are those of `pylink size`.
        """
        if self._sizes is None:
            from pylink.api.tables import size_table

            self._sizes = size_table(self.image)
        return self._sizes

    @property
    def relocations(self) -> Table[RelocationRow]:
        """A row for each entry of the image's REL and RELA sections; read at the first use."""
        if self._relocations is None:
            from pylink.api.tables import relocation_table

            self._relocations = relocation_table(self.image)
        return self._relocations

    @property
    def inputs(self) -> Table[InputRow]:
        """A row for each input of the call; sizes of files are read at the first use."""
        from pylink.tabular.table import Table

        if not isinstance(self._inputs, Table):
            from pylink.api.tables import input_table

            self._inputs = input_table(self._inputs)
        return self._inputs

    @property
    def remarks(self) -> Table[RemarkRow]:
        """A row for each remark among the diagnostics; see `pass_remarks` and related options."""
        from pylink.remarks.rows import shown_remarks

        return shown_remarks(self.diagnostics)

    @property
    def phases(self) -> Table[PhaseRow]:
        """A row for each phase that ran after init, in order, like `timings`."""
        from pylink.api.tables import phase_table

        return phase_table(self.timings)

    @property
    def size(self) -> int:
        """The size of the image in bytes; the image is not read for this."""
        return len(self._image) if isinstance(self._image, bytes) else self._image.size

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        """Support pickle and copy; from protocol 5 on the image can be out of band."""
        image: object = self.image
        if protocol.__index__() >= 5:
            from pickle import PickleBuffer

            image = PickleBuffer(self.image)
        state = (tuple(self.diagnostics), self.timings, self.profile, self.arch, self._inputs)
        return _restore_result, (image, *state)

    def __repr__(self) -> str:
        return (
            f"<LinkResult {self.arch}: {self.size} bytes of {len(self._inputs)} inputs "
            f"in {sum(self.timings.values()):.1f} ms, {len(self.diagnostics)} diagnostics>"
        )

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: size, time by phase, first diagnostics, largest sections."""
        from html import escape

        from pylink.api.page import result_html

        title = (
            f"<b>{escape(self.arch)}</b>: {len(self._inputs):,} inputs, {self.size:,} bytes, "
            f"{len(self.sections):,} sections, {sum(self.timings.values()):.1f} ms"
        )
        return result_html(title, self.sections, self.timings, self.diagnostics)


def _restore_result(
    image: Buffer,
    diagnostics: tuple[Diagnostic, ...],
    timings: dict[str, float],
    profile: Profile | None,
    arch: str,
    inputs: Sequence[tuple[str, int | None]],
) -> LinkResult:
    """Return the unpickled result; the image may be an out-of-band buffer."""
    image_bytes = image if isinstance(image, bytes) else bytes(image)
    return LinkResult(image_bytes, diagnostics, timings, profile, arch=arch, inputs=inputs)
