"""IContext and IRange, and `load_report`, which returns an IContext."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import overload

from pylink.report.api.action import IAction
from pylink.report.api.nvtxfilter import actions_by_nvtx
from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.source.maps import SourceMaps

# The release of Nsight Compute whose `ncu_report` this interface behaves like.
VERSION = "2022.3.0"


class IBaseContext:
    """The methods that contexts of reports and of rules share."""

    def get_version(self) -> str:
        """Return the release of Nsight Compute whose interface this is."""
        return VERSION

    def handle_exception(self, msg: str) -> bool:
        """Return False: an exception of a script is not handled here, so the script handles it."""
        del msg
        return False


class IContext(IBaseContext):
    """An open report: a sequence of ranges.

    All actions of the report form one range. With `report` None there are no ranges. Rules, unlike
    scripts, get a context with the objects `frontend` and `controller`.
    """

    def __init__(
        self, report: Report | None, frontend: object = None, controller: object = None
    ) -> None:
        self.report = report or Report()
        self._ranges = () if report is None else (IRange(self),)
        self._frontend = frontend
        self._controller = controller
        self.sources = SourceMaps(self.report)

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self._ranges)

    def __iter__(self) -> Iterator[IRange]:
        """Return the ranges."""
        return iter(self._ranges)

    @overload
    def __getitem__(self, key: int) -> IRange: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[IRange, ...]: ...
    def __getitem__(self, key: int | slice) -> IRange | tuple[IRange, ...]:
        """Return the range at an index (negative: from the end), for a slice a tuple of ranges."""
        _check_index(key, "IContext", len(self._ranges))
        return self._ranges[key]

    def num_ranges(self) -> int:
        """Return the number of ranges."""
        return len(self._ranges)

    def range_by_idx(self, idx: int) -> IRange | None:
        """Return the range of this index; None if out of range."""
        return self._ranges[idx] if 0 <= idx < len(self._ranges) else None

    def frontend(self) -> object:
        """Return the object to which a rule reports; None outside a rule."""
        return self._frontend

    def controller(self) -> object:
        """Return the object by which a rule proposes other rules; None outside a rule."""
        return self._controller


class IRange:
    """The actions of a report, in file order."""

    def __init__(self, context: IContext) -> None:
        self._context = context

    def __len__(self) -> int:
        """Return the number of actions."""
        return self.num_actions()

    def __iter__(self) -> Iterator[IAction]:
        """Return the actions."""
        return (IAction(action, self._context.sources) for action in self._context.report.actions)

    @overload
    def __getitem__(self, key: int) -> IAction: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[IAction, ...]: ...
    def __getitem__(self, key: int | slice) -> IAction | tuple[IAction, ...]:
        """Return the action at an index (negative: from the end), for a slice a tuple of them."""
        actions = self._context.report.actions
        _check_index(key, "IRange", len(actions))
        if isinstance(key, slice):
            return tuple(IAction(action, self._context.sources) for action in actions[key])
        return IAction(actions[key], self._context.sources)

    def num_actions(self) -> int:
        """Return the number of actions."""
        return len(self._context.report.actions)

    def action_by_idx(self, idx: int) -> IAction | None:
        """Return the action of this index; None if out of range."""
        return self[idx] if 0 <= idx < self.num_actions() else None

    def actions_by_nvtx(self, includes: Iterable[str], excludes: Iterable[str]) -> tuple[int, ...]:
        """Return the ascending indices of actions that match one of `includes`, none of `excludes`.

        Both are filters as for `--nvtx-include` and `--nvtx-exclude`, such as
        `pylink@link/merge/`, `[Bottom/*/Top]` or `regex:task.*`; see `nvtxfilter`. Raises
        ValueError for an invalid filter.
        """
        return actions_by_nvtx(self._context.report.actions, includes, excludes)


def load_report(file_name: str | os.PathLike[str], *, strict: bool = True) -> IContext:
    """Open a report file.

    Raises OSError for a file that cannot be read and MalformedReport for one that is not a report.
    With `strict=False`, it returns a context without ranges for such files, as `ncu_report` does.
    """
    from pylink.report.file import read_report

    try:
        return IContext(read_report(file_name))
    except (OSError, ReportError):
        if strict:
            raise
        return IContext(None)


def _check_index(key: object, name: str, count: int) -> None:
    """Raise TypeError or IndexError for an invalid index of an object with `count` elements.

    `name` is the class of the object, for the message.
    """
    if isinstance(key, slice):
        return
    if not isinstance(key, int):
        raise TypeError(f"{name} indices must be integers or slices, not {type(key).__name__}")
    if not -count <= key < count:
        raise IndexError(f"{name} index out of range")
