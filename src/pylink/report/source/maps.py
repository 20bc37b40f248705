"""Where the instructions of a report's actions came from, read once for each entry of sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylink.report.model import Action, Report, Source
    from pylink.report.source.lines import SourceMap


class SourceMaps:
    """The sources of one report, by the actions that ran them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._maps: dict[int, SourceMap] = {}

    def source(self, action: Action) -> Source | None:
        """What the report holds of an action's code."""
        return self._report.source_of(action)

    def of(self, action: Action) -> SourceMap:
        """What looks up the addresses of an action."""
        source = self.source(action)
        source_map = self._maps.get(id(source))
        if source_map is None:
            # Few scripts ask, and it takes what runs a disassembler.
            from pylink.report.source.lines import SourceMap

            source_map = self._maps[id(source)] = SourceMap(source)
        return source_map
