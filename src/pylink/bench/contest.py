"""Runs rounds in which all contenders write the same output in turn.

A first round is not counted: it loads inputs and programs into memory, and shows which contenders
can do the link and its parts. In each counted round every contender links all inputs and every part
of them. Contenders that failed or are too slow are omitted. The order is reversed from round to
round, so that no contender always follows the same one. Every contender writes a new file. Rounds
after a rest link all inputs, with a pause before each run, since memory that was not used for a
while can take longer to allocate.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from fractions import Fraction

from pylink.bench.answers import compare_outputs, is_different, may_be_equal, release_followed
from pylink.bench.contenders import NVLINK
from pylink.bench.processes import RunFailed
from pylink.bench.results import RESTED, WARM, WHOLE, Results
from pylink.terminal.numbers import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pylink.bench.commandline import Link
    from pylink.bench.contenders import Contender

# Shares of the inputs that contenders also link, besides all of them, to see times grow.
PARTS = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2))
# Least number of inputs for parts: an eighth of fewer is less than two.
FEWEST_INPUTS = 16

# A slow contender is dropped only after this number of rounds: results with fewer cannot be
# compared.
FEWEST_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """The rounds of a measurement; `rounds` is their number.

    With a `rest`, further rounds have a pause of so many seconds before each run. A contender that
    worked for `patience` seconds takes no part in rounds after the first FEWEST_ROUNDS of a mode.
    `with_parts` says whether parts of the inputs are linked, too, to see times grow.
    """

    rounds: int = 11
    rest: float = 0.0
    patience: float = 60.0
    with_parts: bool = True

    @property
    def rested_rounds(self) -> int:
        """The number of rounds with a pause before each run."""
        return min(max(FEWEST_ROUNDS, self.rounds // 2), self.rounds) if self.rest else 0

    def count_steps(self, size: int, contenders: int) -> int:
        """Return the number of texts that a Contest reports about a link of `size` inputs.

        `contenders` is their number. The result holds if all of them can do the link and the parts
        that are tried first, and none is too slow.
        """
        parts = len(PARTS) if self.with_parts and size >= FEWEST_INPUTS else 0
        runs = 1 + self.rounds * (1 + parts) + self.rested_rounds
        return contenders * runs + parts


class Contest:
    """Rounds of a link by all contenders that can do it; `report` gets texts about the progress."""

    def __init__(
        self, link: Link, contenders: Sequence[Contender], plan: Plan, report: Callable[[str], None]
    ) -> None:
        self.results = Results()
        self._link = link
        self._contenders = list(contenders)
        self._plan = plan
        self._report = report
        self._spent_seconds: dict[str, float] = {}  # by name of a contender

    def run(self) -> Results:
        """Run all rounds and return the results, which have the failures of contenders, too."""
        results = self.results
        results.about = {contender.name: contender.about for contender in self._contenders}
        self._compare_first_outputs()
        parts = {WHOLE: self._link.size} | self._find_parts()
        for turn in range(self._plan.rounds):
            order = self._contenders if turn % 2 == 0 else self._contenders[::-1]
            sizes = list(parts.items()) if turn % 2 == 0 else list(parts.items())[::-1]
            for part, size in sizes:
                for contender in order:
                    if self._takes_part(contender, turn):
                        self._measure(contender, WARM, part, size, turn)
        for turn in range(self._plan.rested_rounds):
            for contender in self._contenders if turn % 2 == 0 else self._contenders[::-1]:
                if self._takes_part(contender, turn):
                    self._remove_output()
                    time.sleep(self._plan.rest)
                    self._measure(contender, RESTED, WHOLE, self._link.size, turn)
        self._remove_output()
        return results

    def _compare_first_outputs(self) -> None:
        """Let every contender link once, and compare its output with that of nvlink.

        The nvlink has the contender's release, or for pylink the release that pylink follows.
        Contenders that fail are removed.
        """
        outputs: dict[Contender, bytes] = {}
        for contender in self._contenders:
            self._report(f"{contender.name}, once before the rounds")
            try:
                image = self._link_once(contender, self._link)
                if contender.links:
                    outputs[contender] = image
            except RunFailed as error:
                contender.failed = self.results.failures[contender.name] = str(error)
        self._contenders = [contender for contender in self._contenders if not contender.failed]
        # Output of the first nvlink of each release.
        references: dict[Contender, bytes] = {}
        for contender, image in outputs.items():
            if contender.name.startswith(NVLINK) and not any(
                contender.release == other.release for other in references
            ):
                references[contender] = image
        for contender, image in outputs.items():
            if not references:
                answer = "not compared: there is no output of nvlink"
            elif contender in references:
                answer = "the reference of the others"
                if len(references) > 1:
                    answer = f"the reference of others of release {contender.release or 'unknown'}"
            else:
                answer = self._compare_with_release(contender, image, references)
            self.results.answers[contender.name] = answer

    def _link_once(self, contender: Contender, link: Link) -> bytes:
        """Let a contender link once, and return the output; empty for the copy of the inputs."""
        self._remove_output()
        contender.run(link, link.size)
        if not contender.links:
            return b""
        try:
            with open(link.output_path, "rb") as stream:
                return stream.read()
        except OSError:
            raise RunFailed("it wrote no output") from None

    def _compare_with_release(
        self, contender: Contender, image: bytes, references: Mapping[Contender, bytes]
    ) -> str:
        """Return a text that compares an output with that of an nvlink of its release.

        pylink's output names the release that it follows. Outputs of other releases differ, so an
        nvlink of another release counts only if its output is the same. Without an nvlink that
        counts, the text says so.
        """
        release = release_followed(image) if contender.is_pylink else contender.release
        answers = [
            self._compare(contender, image, output, other.name)
            for other, output in references.items()
            if output == image or may_be_equal(release, other.release)
        ]
        if not answers:
            others = ", ".join(other.release for other in references)
            verb = "follows" if contender.is_pylink else "is of"
            return f"not compared: it {verb} release {release}, and nvlink is of {others}"
        return next((answer for answer in answers if not is_different(answer)), answers[0])

    def _compare(self, contender: Contender, image: bytes, expected: bytes, other: str) -> str:
        """Return a text that compares `image` with `expected`, the output of the nvlink `other`.

        If they differ and pylink may have omitted repeated Mercury sections, the contender links
        again with all of them, and that output is compared.
        """
        answer = compare_outputs(image, expected, other)
        if not is_different(answer) or not contender.is_pylink or not self._link.folds:
            return answer
        try:
            unfolded = compare_outputs(
                self._link_once(contender, self._link.without_folding()), expected, other
            )
        except RunFailed:
            return answer
        if is_different(unfolded):
            return unfolded
        return f"{unfolded}, and copies of Mercury sections, which --merc-dedup=off keeps"

    def _find_parts(self) -> dict[Fraction, int]:
        """Map shares of the inputs to sizes of parts that every contender can link.

        If the first inputs do not link alone, inputs that need one another form the parts. The
        result is empty if that fails, too, or with too few inputs: a fact of the results says why.
        It is also empty if the plan has no parts.
        """
        if not self._plan.with_parts:
            return {}
        size = self._link.size
        facts = self.results.facts
        if size < FEWEST_INPUTS:
            label = count_text(size, "input")
            facts["growth"] = f"not measured: {label} besides archives, {FEWEST_INPUTS} are needed"
            return {}
        parts = self._try_parts()
        if not parts and self._link.regroup():
            parts = self._try_parts()
            if parts:
                facts["growth"] = "of parts whose inputs need one another: the first do not link"
        return parts

    def _try_parts(self) -> dict[Fraction, int]:
        """Let every contender link each part; return the sizes of parts by share if all succeed.

        If a contender fails, the result is empty, and a fact of the results says why. It is also
        empty if the inputs do not form such parts.
        """
        facts, size = self.results.facts, self._link.size
        sizes = self._link.sizes(PARTS)
        for count in sizes.values():
            self._report(f"a part of {count} inputs, once before the rounds")
            for contender in self._contenders:
                self._remove_output()
                try:
                    contender.run(self._link, count)
                except RunFailed as error:
                    reason = str(error).splitlines()[0]
                    facts["growth"] = (
                        f"not measured: {count} of {size} inputs do not link alone, "
                        f"{contender.name} says: {reason}"
                    )
                    return {}
        return sizes

    def _takes_part(self, contender: Contender, turn: int) -> bool:
        """Return whether a contender runs in round `turn`: it did not fail, and is not too slow.

        No contender is too slow for the first FEWEST_ROUNDS rounds.
        """
        return not contender.failed and (turn < FEWEST_ROUNDS or self._is_quick(contender))

    def _is_quick(self, contender: Contender) -> bool:
        """Return whether a contender has worked for less than the time limit (`patience`)."""
        return self._spent_seconds.get(contender.name, 0.0) < self._plan.patience

    def _measure(
        self, contender: Contender, mode: str, part: Fraction, size: int, turn: int
    ) -> None:
        """Let a contender link the `part` with `size` inputs in round `turn`; add run or failure.

        `mode` is WARM or, after a pause, RESTED.
        """
        self._remove_output()
        self._report(f"{contender.name}, {size} inputs, round {turn + 1}")
        start = time.perf_counter()
        try:
            run = contender.run(self._link, size)
        except RunFailed as error:
            contender.failed = str(error)
            self.results.failures[contender.name] = f"in round {turn + 1}: {contender.failed}"
            return
        self._spent_seconds[contender.name] = (
            self._spent_seconds.get(contender.name, 0.0) + time.perf_counter() - start
        )
        self.results.add_run(contender.name, mode, part, size, turn, run)

    def _remove_output(self) -> None:
        """Remove the output, so that each contender writes a new file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._link.output_path)
