"""Progress calls and cancellation of a running link."""

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
        """An object that can cancel a link, such as a `threading.Event`."""

        def is_set(self) -> bool:
            """Return whether to cancel the link; called between two phases."""

    # Arguments: the phase that ended, the number of finished phases, the number of all. A call that
    # does several links passes "link", and counts links instead.
    ProgressCall = Callable[[str, int, int], object]

# The phases of every link of cubins; link-time optimization adds others between them.
PHASES = ("init", "read", "merge", "layout", "relocate", "finalize", "write")

# Name of the logger of `logging` that gets diagnostics.
LOGGER = "pylink"


class LinkCancelled(Exception):
    """A link was cancelled between two phases by `cancel`.

    This link wrote no output; an existing output file is unchanged.
    """

    def __init__(self, message: str = "the link was cancelled") -> None:
        super().__init__(message)

    def _render_traceback_(self) -> list[str]:
        """Return the lines for IPython: the frames of the caller and one frame of pylink."""
        from pylink.diagnostics.traces import ipython_lines

        return ipython_lines(self)


class OneFrame:
    """A context for a public function: if a link fails, tracebacks end in that function.

    Frames of the functions that it calls are hidden.
    """

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
    """Reports finished phases (PHASES) to a caller, and checks whether the link was cancelled.

    `progress` is called with the phase, the number of finished phases and the number of all; True
    shows a bar on a terminal or in a notebook.

    Raises TypeError for arguments of wrong types.
    """

    __slots__ = ("_bar", "_call", "_cancel")

    def __init__(
        self,
        progress: ProgressCall | bool | None,  # noqa: FBT001 -- a function, or True for a bar
        cancel: Cancel | None,
    ) -> None:
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
        """Whether the caller wants progress (by a function or a bar) or may cancel the link."""
        return self._call is not None or self._cancel is not None or self._bar is not None

    def check(self) -> None:
        """Raise LinkCancelled if the link was cancelled."""
        if self._cancel is not None and self._cancel.is_set():
            raise LinkCancelled

    def end_phase(self, tag: str) -> None:
        """Report a finished phase; LinkCancelled if the link was cancelled by now.

        After the last phase it is never raised. A phase that is not one of PHASES is not reported.
        """
        if tag in PHASES:
            self.report_progress(tag, PHASES.index(tag) + 1, len(PHASES))
        if tag != PHASES[-1]:  # after the last phase, which has written the output, it is too late
            self.check()

    def report_progress(self, tag: str, done: int, total: int) -> None:
        """Report that `done` of `total` parts are finished, `tag` last."""
        if self._bar is not None:
            self._bar.set_amount(done, total)
        if self._call is not None:
            self._call(tag, done, total)

    def close(self) -> None:
        """Remove the bar after the end of the link."""
        if self._bar is not None:
            self._bar.stop()


class LoggingRenderer(Renderer):
    """Logs each diagnostic; the log record has it as its attribute `diagnostic`."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def emit(self, diagnostic: Diagnostic) -> None:
        from pylink.diagnostics.levels import logging_level

        # Names from files may have bytes that handlers cannot write.
        text = printable(diagnostic.message).encode("utf-8", "backslashreplace").decode()
        level = logging_level(diagnostic.level)
        self._logger.log(level, "%s", text, extra={"diagnostic": diagnostic})


def logging_renderers() -> list[Renderer]:
    """Return the renderer for `logging`; none if the logger `pylink` has no handlers."""
    logging = sys.modules.get("logging")  # not loaded: there are no handlers
    if logging is None:
        return []
    logger = logging.getLogger(LOGGER)
    return [LoggingRenderer(logger)] if logger.handlers else []
