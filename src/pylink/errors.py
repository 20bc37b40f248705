"""The exception a failed link ends with, and what other exceptions say to users."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.sourcefiles import SourceFiles


class LinkError(Exception):
    """A link that could not be done; `diagnostics` holds everything it reported, in order.

    As text it has the message of each error on a line of its own and, indented below it, what is
    known of the place: source line, readable name of the symbol, number of the input, notes.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)
        # Which source lines the text may show; without it those below the working directory.
        self.sources: SourceFiles | None = None

    def __str__(self) -> str:
        """The errors in words, the first line of each its message."""
        from pylink.diagnostics.plain import plain_text  # noqa: PLC0415
        from pylink.diagnostics.sourcefiles import SourceFiles  # noqa: PLC0415

        sources = SourceFiles() if self.sources is None else self.sources
        return "\n".join(plain_text(one, sources) for one in self.errors)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The records that made the link fail, without warnings and remarks."""
        from pylink.diagnostics.severity import DISCRETIONARY  # noqa: PLC0415

        return tuple(one for one in self.diagnostics if one.level >= DISCRETIONARY)


def reason_of(error: Exception) -> str:
    """What went wrong, without the number and the path that the text of an OSError has."""
    return getattr(error, "strerror", None) or str(error)
