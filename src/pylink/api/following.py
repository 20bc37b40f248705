"""How a caller follows a link while it runs: how far it is, and whether it is still wanted."""

from __future__ import annotations

import sys

from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.sink import Renderer
from pylink.diagnostics.stream import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from types import TracebackType
    from typing import Protocol

    from pylink.diagnostics import Diagnostic
    from pylink.terminal.progress import Progress

    class Cancel(Protocol):
        """What says that a link is no longer wanted, such as a `threading.Event`."""

        def is_set(self) -> bool:
            """Whether to give up; asked between two phases."""

    ProgressCall = Callable[[str, int, int], object]

# The phases that every link of cubins has; those of link-time optimization come between.
PHASES = ("init", "read", "merge", "layout", "relocate", "finalize", "write")

LOGGER = "pylink"


class LinkCancelled(Exception):
    """A link that was given up between two phases because `cancel` said so.

    No output was written, and what was there before is as it was.
    """

    def __init__(self, message: str = "the link was cancelled") -> None:
        super().__init__(message)

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: the frames of the caller and one of pylink's."""
        from pylink.diagnostics.traces import ipython_lines

        return ipython_lines(self)


class OneFrame:
    """Around the work of a public function: if a link fails, tracebacks show no frame below it."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if trace is not None and isinstance(error, (LinkError, LinkCancelled)):
            from pylink.diagnostics.traces import hide_below

            hide_below(error)


ONE_FRAME = OneFrame()


class Following:
    """Tells a caller of each phase that ended, and asks whether to go on.

    `progress` is called with the phase, how many phases are done and how many there are; True
    stands for a bar on a terminal or in a notebook.

    Raises TypeError for arguments that cannot do that.
    """

    __slots__ = ("_bar", "_call", "_cancel")

    def __init__(self, progress: ProgressCall | bool | None, cancel: Cancel | None) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise TypeError(f"progress is a function or True, not {progress!r}")
        if cancel is not None and not callable(getattr(cancel, "is_set", None)):
            raise TypeError(f"cancel has a method is_set, as threading.Event, unlike {cancel!r}")
        self._call = progress if callable(progress) else None
        self._cancel = cancel
        self._bar: Progress | None = None
        if progress is True:
            from pylink.terminal.progress import Progress

            self._bar = Progress("linking", len(PHASES))

    @property
    def is_wanted(self) -> bool:
        """Whether there is anybody to tell or to ask."""
        return self._call is not None or self._cancel is not None or self._bar is not None

    def check(self) -> None:
        """Raise LinkCancelled if the link is no longer wanted."""
        if self._cancel is not None and self._cancel.is_set():
            raise LinkCancelled

    def end_phase(self, tag: str) -> None:
        """Tell of the phase that ended; LinkCancelled if the link is no longer wanted."""
        if tag in PHASES:
            self.reach(tag, PHASES.index(tag) + 1, len(PHASES))
        if tag != PHASES[-1]:  # which writes the output
            self.check()

    def reach(self, tag: str, done: int, total: int) -> None:
        """Tell that so much of so much is done, with `tag` last."""
        if self._bar is not None:
            self._bar.reach(done, total)
        if self._call is not None:
            self._call(tag, done, total)

    def close(self) -> None:
        """The link ended, with a result or without."""
        if self._bar is not None:
            self._bar.stop()


class LoggingRenderer(Renderer):
    """Makes a log record of each diagnostic, with the diagnostic as its attribute `diagnostic`."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def emit(self, diagnostic: Diagnostic) -> None:
        from pylink.diagnostics.levels import logging_level

        # Names from files may have bytes that no handler could write.
        text = printable(diagnostic.message).encode("utf-8", "backslashreplace").decode()
        level = logging_level(diagnostic.level)
        self._logger.log(level, "%s", text, extra={"diagnostic": diagnostic})


def logging_renderers() -> list[Renderer]:
    """What passes diagnostics on to `logging`; nothing while `pylink` has no handler of its own."""
    logging = sys.modules.get("logging")  # whoever has handlers has imported it
    if logging is None:
        return []
    logger = logging.getLogger(LOGGER)
    return [LoggingRenderer(logger)] if logger.handlers else []
