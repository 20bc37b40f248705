"""A progress bar for people who wait: on a terminal or in a notebook, after a second, with rich.

It is drawn on standard error and gone when the work is done.
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

# Seconds before anything is shown: most work is done by then.
PATIENCE = 1.0

# The phase that a link ends with.
LAST = "write"


class Progress:
    """Shows how much of a piece of work is done; also a context manager."""

    __slots__ = ("_bar", "_begun", "_done", "_is_shown", "_task", "_text", "_total")

    def __init__(self, text: str, total: int = 0, *, wanted: bool = True) -> None:
        self._text = text
        self._total = total
        self._done = 0
        self._begun = time.monotonic()
        self._is_shown = wanted and (is_terminal(sys.stderr) or "ipykernel" in sys.modules)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def advance(self, done: int = -1, text: str = "") -> None:
        """So much is done (default: one more); `text` says what comes now."""
        self._done = self._done + 1 if done < 0 else done
        self.tell(text)

    def reach(self, done: int, total: int) -> None:
        """So much of so much is done."""
        self._total = total
        self.advance(done)

    def tell(self, text: str = "") -> None:
        """Say what comes now."""
        if not self._is_shown:
            return
        if self._bar is None and not self._start():
            return
        description = f"{self._text}: {text}" if text else self._text
        self._bar.update(
            self._task, completed=self._done, total=self._total, description=description
        )

    def stop(self) -> None:
        """The work is done, or has failed."""
        if self._bar is not None:
            self._bar.stop()
        self._is_shown = False

    def _start(self) -> bool:
        if time.monotonic() - self._begun < PATIENCE:
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

    # From init to write.
    PHASES = 7

    def __init__(self) -> None:
        self._progress = Progress("linking", self.PHASES)

    def step_ended(self, name: str, detail: object) -> None:
        self._progress.tell(f"{name.replace('_', ' ')} done")

    def phase_ended(self, tag: str, result: object) -> None:
        self._progress.advance(text=f"{tag} done")
        if tag == LAST:  # what is done about the link after it has bars of its own
            self._progress.stop()

    def close(self, *, failed: bool) -> None:
        self._progress.stop()
