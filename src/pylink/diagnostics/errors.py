"""The records of a link, the exception of a failed link, and the reasons of other exceptions."""

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
    Base = tuple  # without the type of its items, which only type checkers import


class Diagnostics(Base):
    """Records of a link, in order. `table` has them with columns, for numpy, pandas and Arrow."""

    __slots__ = ()

    @property
    def table(self) -> Table[DiagnosticRow]:
        """A row for each record: number, kind, severity, message and place."""
        from pylink.diagnostics.rows import diagnostic_table

        return diagnostic_table(self)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the first records, and the number of each severity."""
        from pylink.diagnostics.page import diagnostics_html

        return diagnostics_html(self)


class LinkError(Exception):
    """A link failed; `diagnostics` holds all its records, in order.

    Its text has the message of each error on a line of its own. Indented lines below it have the
    source line, the readable name of the symbol, the number of the input, and notes.
    """

    diagnostics: Diagnostics

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = Diagnostics(diagnostics)
        super().__init__(self.diagnostics)
        # Source files whose lines the text may show; None: those below the working directory.
        self.sources: SourceFiles | None = None

    def __str__(self) -> str:
        """Return the text of the errors; the first line of each is its message."""
        from pylink.diagnostics.plain import plain_text
        from pylink.diagnostics.sourcefiles import SourceFiles

        sources = SourceFiles() if self.sources is None else self.sources
        return "\n".join(plain_text(error, sources) for error in self.errors)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the diagnostics with their places."""
        from pylink.diagnostics.page import diagnostics_html

        return f"<p><b>LinkError</b></p>{diagnostics_html(self.diagnostics, self.sources)}"

    def _render_traceback_(self) -> list[str]:
        """Return the lines for IPython: the frames of the caller and one frame of pylink."""
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
    """Return the text of an exception; for an OSError, without its number and paths."""
    return getattr(error, "strerror", None) or str(error)
