"""Frames of a traceback that people who call pylink need not see.

pytest and IPython omit frames with a local variable `__tracebackhide__`, rich those with
`_rich_traceback_omit`. Logs and `traceback` heed neither and have all frames.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

HIDING = ("__tracebackhide__", "_rich_traceback_omit")


def hide_below(error: BaseException) -> None:
    """Hide what the running function called: its frame is the first of the error's traceback.

    So are the frames of what was caught there, such as the OSError of a file that is missing.
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
    """The lines with which IPython shows an error, without what is hidden.

    By itself IPython omits hidden frames except for the last one, and shows what was caught.
    """
    from types import TracebackType

    from IPython import get_ipython  # who asks for these lines

    shown = None
    for link in reversed(list(_links(error.__traceback__))):
        if not _is_hidden(link):
            shown = TracebackType(shown, link.tb_frame, link.tb_lasti, link.tb_lineno)
    context, suppressed = error.__context__, error.__suppress_context__
    caught = next(_links(context.__traceback__), None) if context is not None else None
    error.__suppress_context__ = suppressed or (caught is not None and _is_hidden(caught))
    try:
        tracebacks = get_ipython().InteractiveTB
        lines: list[str] = tracebacks.structured_traceback(type(error), error, shown)
        return lines
    finally:
        error.__suppress_context__ = suppressed


def _links(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _hide(links: list[TracebackType]) -> None:
    for link in links:
        link.tb_frame.f_locals.update(dict.fromkeys(HIDING, True))


def _is_hidden(link: TracebackType) -> bool:
    return link.tb_frame.f_locals.get(HIDING[0]) is True
