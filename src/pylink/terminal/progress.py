"""A progress bar on a terminal or in a notebook, shown after a second if rich is installed.

The bar is on standard error, and removed when the work is done.
"""

from __future__ import annotations

import importlib
import sys
import time

from pylink.diagnostics.stream import is_terminal
from pylink.observer import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Seconds before the bar appears. Work that takes less, as most does, has no bar.
SHOW_AFTER = 1.0

# The last phase of a link.
LAST_PHASE = "write"


class Progress:
    """Shows how much of a piece of work is done; also a context manager.

    `text` names the work, `total` is its amount in any unit. With `enabled` False nothing is shown.
    """

    __slots__ = ("_bar", "_finished", "_is_shown", "_start_time", "_task", "_text", "_total")

    def __init__(self, text: str, total: int = 0, *, enabled: bool = True) -> None:
        self._text = text
        self._total = total
        self._finished = 0
        self._start_time = time.monotonic()
        # Whether to show a bar, once SHOW_AFTER is over.
        self._is_shown = enabled and (is_terminal(sys.stderr) or "ipykernel" in sys.modules)
        self._bar: Any = None  # the Progress of rich; None until it appears
        self._task: Any = None  # number of the bar's only line

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def advance(self, done: int = -1, text: str = "") -> None:
        """Set the amount done (-1: one more than before) and show `text`, the current step."""
        self._finished = self._finished + 1 if done < 0 else done
        self.show_step(text)

    def set_amount(self, done: int, total: int) -> None:
        """Set the amount done and the total."""
        self._total = total
        self.advance(done)

    def show_step(self, text: str = "") -> None:
        """Show `text`, the current step."""
        if not self._is_shown:
            return
        if self._bar is None and not self._start():
            return
        description = f"{self._text}: {text}" if text else self._text
        self._bar.update(
            self._task, completed=self._finished, total=self._total, description=description
        )

    def stop(self) -> None:
        """Remove the bar: the work is done or has failed."""
        if self._bar is not None:
            self._bar.stop()
        self._is_shown = False

    def _start(self) -> bool:
        """Let the bar appear; return False if it is too early or rich is not installed."""
        if time.monotonic() - self._start_time < SHOW_AFTER:
            return False
        try:
            console = importlib.import_module("rich.console").Console(stderr=True)
            bar = importlib.import_module("rich.progress").Progress(console=console, transient=True)
        except ImportError:
            self._is_shown = False
            return False
        self._bar, self._task = bar, bar.add_task(self._text, total=self._total)
        bar.start()
        return True


class ProgressObserver(Observer):
    """Shows which phase and step a long link is in."""

    __slots__ = ("_progress",)

    # Number of the phases of a usual link, from init to write.
    PHASES = 7

    def __init__(self) -> None:
        self._progress = Progress("linking", self.PHASES)

    def step_ended(self, name: str, detail: object) -> None:
        """Show the step that ended."""
        self._progress.show_step(f"{name.replace('_', ' ')} done")

    def phase_ended(self, tag: str, result: object) -> None:
        """Fill the bar by one phase; stop it after the last."""
        self._progress.advance(text=f"{tag} done")
        if tag == LAST_PHASE:  # reports after the link have bars of their own
            self._progress.stop()

    def close(self, *, failed: bool) -> None:
        self._progress.stop()
