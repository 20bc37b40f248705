"""What a link made."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.api.tables import SectionRow, SymbolRow, Table
    from pylink.diagnostics import Diagnostic
    from pylink.outputs.keptfile import KeptFile
    from pylink.profile.model import Profile


class LinkResult:
    """What a link made: the image, and what is known about it and about the link."""

    __slots__ = ("_image", "_sections", "_symbols", "arch", "diagnostics", "profile", "timings")

    arch: str
    """The architecture that was linked for, such as `sm_90a`."""
    diagnostics: tuple[Diagnostic, ...]
    """What the link had to say, in order: warnings at most, since it worked.

    A record whose place nobody looked at keeps the inputs in memory, which `del` of the result lets
    go.
    """
    timings: dict[str, float]
    """Milliseconds of each phase that ran, by its name."""
    profile: Profile | None
    """What the link cost, None unless `profile` asked for it."""

    def __init__(
        self,
        image: bytes | KeptFile,
        diagnostics: tuple[Diagnostic, ...],
        timings: dict[str, float],
        profile: Profile | None = None,
        *,
        arch: str = "",
    ) -> None:
        self._image = image
        self.arch = arch
        self.diagnostics = diagnostics
        self.timings = timings
        self.profile = profile
        self._sections: Table[SectionRow] | None = None
        self._symbols: Table[SymbolRow] | None = None

    @property
    def image(self) -> bytes:
        """The linked file, also when it was written to a path; PTX with `emit_ptx`.

        A large file that was written is read when this is first asked for; OSError when somebody
        has changed it in its place. That it was replaced or removed does not matter.
        """
        if not isinstance(self._image, bytes):
            self._image = self._image.read()
        return self._image

    @property
    def sections(self) -> Table[SectionRow]:
        """A row for each section of the image, in file order; read when first asked for."""
        if self._sections is None:
            from pylink.api.tables import section_table  # noqa: PLC0415 -- for those who look

            self._sections = section_table(self.image)
        return self._sections

    @property
    def symbols(self) -> Table[SymbolRow]:
        """A row for each symbol of the image, in its order; read when first asked for."""
        if self._symbols is None:
            from pylink.api.tables import symbol_table  # noqa: PLC0415 -- for those who look

            self._symbols = symbol_table(self.image)
        return self._symbols

    @property
    def _size(self) -> int:
        return len(self._image) if isinstance(self._image, bytes) else self._image.size

    def __repr__(self) -> str:
        return f"<LinkResult {self.arch} {self._size} bytes>"

    def _repr_html_(self) -> str:
        """What a notebook shows: size, phases, diagnostics and sections."""
        from html import escape  # noqa: PLC0415 -- for notebooks

        said = "".join(
            f"<li>{one.severity.title}: {escape(one.message)}</li>" for one in self.diagnostics
        )
        phases = ", ".join(f"{escape(name)} {ms:.2f} ms" for name, ms in self.timings.items())
        return (
            f"<p><b>{escape(self.arch)}</b>: {self._size} bytes, "
            f"{len(self.symbols)} symbols; {phases}</p>"
            + (f"<ul>{said}</ul>" if said else "")
            + self.sections._repr_html_()
        )
