"""Hides frames of pylink in the tracebacks of its callers.

pytest and IPython omit frames with a local variable `__tracebackhide__`, rich omits those with
`_rich_traceback_omit`. Logs and `traceback` ignore these variables and have all frames.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

# Local variables that hide the frame that has them.
HIDING = ("__tracebackhide__", "_rich_traceback_omit")


def hide_below(error: BaseException) -> None:
    """Hide all frames of an error except the first, which is that of the running function.

    If the error was raised while one of the hidden frames handled another exception, such as an
    OSError, the frames of the other exception are hidden, too.
    """
    first, *below = _links(error.__traceback__)
    _hide(below)
    context = error.__context__
    while context is not None:
        links = list(_links(context.__traceback__))
        if not links or links[0].tb_frame is first.tb_frame or not _is_hidden(links[0]):
            break
        _hide(links)
        context = context.__context__


def ipython_lines(error: BaseException) -> list[str]:
    """Return IPython's lines for an error, without hidden frames and without a hidden context.

    By itself IPython shows the last hidden frame and the caught exception.
    """
    from types import TracebackType

    from IPython import get_ipython  # loaded: only IPython calls this

    visible = None
    for link in reversed(list(_links(error.__traceback__))):
        if not _is_hidden(link):
            visible = TracebackType(visible, link.tb_frame, link.tb_lasti, link.tb_lineno)
    context, suppressed = error.__context__, error.__suppress_context__
    caught = next(_links(context.__traceback__), None) if context is not None else None
    error.__suppress_context__ = suppressed or (caught is not None and _is_hidden(caught))
    try:
        tracebacks = get_ipython().InteractiveTB
        lines: list[str] = tracebacks.structured_traceback(type(error), error, visible)
        return lines
    finally:
        error.__suppress_context__ = suppressed


def _links(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Yield the objects of a traceback, one for each frame, from the caller down."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _hide(links: list[TracebackType]) -> None:
    """Mark frames so that the tracebacks of pytest, IPython and rich omit them."""
    for link in links:
        link.tb_frame.f_locals.update(dict.fromkeys(HIDING, True))


def _is_hidden(link: TracebackType) -> bool:
    """Return whether `_hide` marked the frame."""
    return link.tb_frame.f_locals.get(HIDING[0]) is True
