"""Base of observers, which watch a link and write about it: remarks, profiles, maps.

An observer gets the result of each phase when the phase has ended. It reads finished tables and
changes nothing, so the output does not depend on it. Observers that measure are also called at
the end of each step of a phase.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.profile.model import Profile


class Observer:
    """Base of observers of a link; the methods do nothing.

    `timed`: kernels record the times of their items. `profile`: costs of the link once it has
    ended. `of_image`: the observer reads the linked file. `of_cubins`: there is nothing to write
    if no cubin was linked, because link-time optimization produced the whole program.
    """

    __slots__ = ()

    timed = False
    of_image = False
    of_cubins = False
    profile: Profile | None = None

    @property
    def records_folds(self) -> bool:
        return False

    def resume(self) -> None:
        """All observers have seen the end of the phase; time from now on belongs to the next."""

    def step_ended(self, name: str, detail: object) -> None:
        """The step `name` of the running phase ended; it began at the end of the previous step."""

    def phase_ended(self, tag: str, result: object) -> None:
        """The phase `tag` ended with `result`, such as `Merged` for merge."""

    def close(self, *, failed: bool) -> None:
        """The link ended; `failed` if it made no output. Called once, also after errors."""


class Steps:
    """Passes the ends of a phase's steps to observers; most links have no observer.

    `on_phase_end` is called with the tag of each phase that ended, and may end the link by raising.
    Unlike an observer it sees no table, so the link takes the same path with it.
    """

    __slots__ = ("observers", "on_phase_end", "timed")

    def __init__(
        self, observers: Sequence[Observer] = (), on_phase_end: Callable[[str], None] | None = None
    ) -> None:
        self.observers = observers
        self.on_phase_end = on_phase_end
        self.timed = any(observer.timed for observer in observers)

    def end_step(self, name: str, detail: object = None) -> None:
        """The step `name` has ended; `detail` has data that the phase's result does not show."""
        for observer in self.observers:
            observer.step_ended(name, detail)

    def times(self, items: int) -> bytearray | None:
        """A buffer for the TimeRow of each item of a kernel; None if times are not recorded."""
        return bytearray(32 * items) if self.timed else None

    @property
    def records_folds(self) -> bool:
        return any(observer.records_folds for observer in self.observers)

    def drop_observers(self) -> None:
        """Drop the observers: they refer to the link's results, and its job refers to this."""
        self.observers = ()
