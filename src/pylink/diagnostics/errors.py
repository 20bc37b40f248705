"""What a link reported, the exception a failed one ends with, and what other exceptions say."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.rows import DiagnosticRow
    from pylink.diagnostics.sourcefiles import SourceFiles
    from pylink.tabular.table import Table

    Base = tuple[Diagnostic, ...]
else:
    Base = tuple


class Diagnostics(Base):
    """Records of a link, in order. `table` has them with columns, for numpy, pandas and Arrow."""

    __slots__ = ()

    @property
    def table(self) -> Table[DiagnosticRow]:
        """A row for each record: number, kind, severity, message and place."""
        from pylink.diagnostics.rows import diagnostic_table

        return diagnostic_table(self)

    def _repr_html_(self) -> str:
        """The first of them as a notebook shows them, and how many there are of each severity."""
        from pylink.diagnostics.page import diagnostics_html

        return diagnostics_html(self)


class LinkError(Exception):
    """A link that could not be done; `diagnostics` holds everything it reported, in order.

    As text it has the message of each error on a line of its own and, indented below it, what is
    known of the place: source line, readable name of the symbol, number of the input, notes.
    """

    diagnostics: Diagnostics

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = Diagnostics(diagnostics)
        super().__init__(self.diagnostics)
        # Which source lines the text may show; without it those below the working directory.
        self.sources: SourceFiles | None = None

    def __str__(self) -> str:
        """The errors in words, the first line of each its message."""
        from pylink.diagnostics.plain import plain_text
        from pylink.diagnostics.sourcefiles import SourceFiles

        sources = SourceFiles() if self.sources is None else self.sources
        return "\n".join(plain_text(error, sources) for error in self.errors)

    def _repr_html_(self) -> str:
        """What a notebook shows of a kept error: the diagnostics with their places."""
        from pylink.diagnostics.page import diagnostics_html

        return f"<p><b>LinkError</b></p>{diagnostics_html(self.diagnostics, self.sources)}"

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: the frames of the caller and one of pylink's."""
        from pylink.diagnostics.traces import ipython_lines

        return ipython_lines(self)

    @property
    def errors(self) -> Diagnostics:
        """The records that made the link fail, without warnings and remarks."""
        from pylink.diagnostics.severity import DISCRETIONARY

        return Diagnostics(
            diagnostic for diagnostic in self.diagnostics if diagnostic.level >= DISCRETIONARY
        )


def reason_of(error: Exception) -> str:
    """What went wrong, without the number and the path that the text of an OSError has."""
    return getattr(error, "strerror", None) or str(error)
