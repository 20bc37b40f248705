"""The observer of a link that runs each remark pass after the phase whose result it reads."""

from __future__ import annotations

from importlib import import_module

from pylink.observer import Observer
from pylink.remarks.passes import MERC_DEDUP, PASSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.remarks.channel import Remarks
    from pylink.remarks.settings import Settings


class RemarkObserver(Observer):
    """Runs each pass whose remarks are shown or written; other passes are not even imported.

    The file of remarks is opened after the phase init, so that the link ends early if that fails.
    `remarks` is the channel that the passes write to, None until the phase init has ended.
    """

    __slots__ = ("_settings", "_sink", "remarks")

    def __init__(self, settings: Settings, sink: Sink) -> None:
        self._settings = settings
        self._sink = sink
        self.remarks: Remarks | None = None

    @property
    def records_folds(self) -> bool:
        """Whether the phase merge stores its comparisons of Mercury sections for a pass."""
        return self.remarks is not None and self.remarks.wants_reasons(MERC_DEDUP)

    def phase_ended(self, tag: str, result: object) -> None:
        """Run the passes that follow the phase `tag`."""
        if self.remarks is None:
            self.remarks = self._settings.open(self._sink)
        for name, (phase, module) in PASSES.items():
            if phase == tag and self.remarks.wants(name):
                import_module(f"pylink.remarks.passes.{module}").emit(result, self.remarks)

    def close(self, *, failed: bool) -> None:
        """Complete the file of remarks; a failed link writes none."""
        if self.remarks is not None:
            self.remarks.close(failed=failed)
