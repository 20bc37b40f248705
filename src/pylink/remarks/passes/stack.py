"""Pass stack-size: the stack of every live kernel, and the calls that need it."""

from __future__ import annotations

from pylink.facts.rownumbers import NO_STACK_BOUND, EntityFlag
from pylink.remarks.passes.catalogue import KERNEL_STACK, STACK_UNKNOWN
from pylink.remarks.passes.graph import CallGraph, chain
from pylink.remarks.passes.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged
    from pylink.remarks import Remarks
    from pylink.remarks.passes.graph import Step


def emit(merged: Merged, remarks: Remarks) -> None:
    """Emit the stack of every live kernel; a relocatable link does not compute it."""
    if merged.objects.job.executable:
        StackPass(merged, remarks).run()


class StackPass:
    """Emits remarks from the call graph and from two numbers of bytes for each entity.

    `frames` has the stack frame of the function itself, `stacks` the stack of it and its callees
    on the deepest path.
    """

    def __init__(self, merged: Merged, remarks: Remarks) -> None:
        self.view = View(merged)
        self.remarks = remarks
        self.graph = CallGraph(merged)
        self.flags = merged.entities.column("flags")
        self.frames = [
            row.frame if row.flags & EntityFlag.DEFINED else 0 for row in merged.entities
        ]
        self.stacks = merged.functions.column("stack")

    def run(self) -> None:
        """Emit a remark for each live kernel."""
        for kernel, flags in enumerate(self.flags):
            if not (flags & EntityFlag.KERNEL and flags & EntityFlag.LIVE):
                continue
            if self.stacks[kernel] == NO_STACK_BOUND:
                self._emit_unknown(kernel)
            else:
                self._emit_stack(kernel)

    def _emit_stack(self, kernel: int) -> None:
        """Emit the stack of a kernel, with the deepest path of calls."""
        steps: list[Step] = [(kernel, False)]
        remaining = self.stacks[kernel] - self.frames[kernel]
        while remaining > 0:
            # The path continues with the first callee whose stack is exactly the remainder.
            steps.append(
                next(
                    step
                    for step in self.graph.callees(steps[-1][0])
                    if self.stacks[step[0]] == remaining
                )
            )
            remaining -= self.frames[steps[-1][0]]
        stack = self.stacks[kernel]
        self.remarks.emit(
            KERNEL_STACK(
                self.view.name(kernel),
                self.view.at_entity(kernel),
                stack,
                Stack=stack,
                Frame=self.frames[kernel],
                Depth=len(steps) - 1,
                Chain=chain(steps, self._with_frame),
            )
        )

    def _emit_unknown(self, kernel: int) -> None:
        """Emit that the stack of a kernel has no bound, with a recursion that it reaches."""
        steps: list[Step] = [(kernel, False)]
        positions = {kernel: 0}  # of each function in `steps`
        while True:
            # A function without a bound is in a cycle, or calls a function without a bound.
            callees = self.graph.callees(steps[-1][0])
            unbounded = (step for step in callees if self.stacks[step[0]] == NO_STACK_BOUND)
            callee = next(unbounded, None)
            if callee is None:  # a frame of a damaged file has the value that means unbounded
                return
            steps.append(callee)
            function = callee[0]
            if function in positions:
                break
            positions[function] = len(steps) - 1
        first = positions[function]
        cycle = steps[first:]
        frame = sum(self.frames[number] for number, _ in cycle[1:])
        self.remarks.emit(
            STACK_UNKNOWN(
                self.view.name(kernel),
                self.view.at_entity(kernel),
                frame,
                Chain=chain(steps[: first + 1], self.view.name),
                Cycle=chain([(function, False), *cycle[1:]], self.view.name),
                Frame=frame,
            )
        )

    def _with_frame(self, function: int) -> str:
        """Return the function's name with its own frame in bytes, such as `f (16)`."""
        return f"{self.view.name(function)} ({self.frames[function]})"
