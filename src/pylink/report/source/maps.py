"""The source maps of a report's actions: one for each entry of `Report.sources`, created once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.report.model import Action, Report, Source
    from pylink.report.source.lines import SourceMap


class SourceMaps:
    """Finds the code of an action of one report, and the map of addresses to source lines."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._maps: dict[int, SourceMap] = {}  # by the id() of the source

    def source(self, action: Action) -> Source | None:
        """Return the report's source entry for the code of an action."""
        return self._report.source_of(action)

    def of(self, action: Action) -> SourceMap:
        """Return the `SourceMap` for the addresses of an action."""
        source = self.source(action)
        source_map = self._maps.get(id(source))
        if source_map is None:
            # This imports the disassembler, which few scripts need.
            from pylink.report.source.lines import SourceMap

            source_map = self._maps[id(source)] = SourceMap(source)
        return source_map
