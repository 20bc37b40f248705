"""The exception a failed link ends with, and what other exceptions say to users."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics import Diagnostic


class LinkError(Exception):
    """A link that could not be done; `diagnostics` holds everything it reported, in order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        """The messages of the errors, a line each, for people: Python prints it as it is."""
        from pylink.diagnostics.severity import DISCRETIONARY  # noqa: PLC0415
        from pylink.diagnostics.stream import printable  # noqa: PLC0415

        return "\n".join(
            printable(diagnostic.message)
            for diagnostic in self.diagnostics
            if diagnostic.severity >= DISCRETIONARY
        )


def reason_of(error: Exception) -> str:
    """What went wrong, without the number and the path that the text of an OSError has."""
    return getattr(error, "strerror", None) or str(error)
