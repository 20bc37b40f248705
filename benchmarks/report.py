"""The text that the benchmarks print at their end: times, ratios, memory, goals met or missed."""

from __future__ import annotations

import math
from itertools import groupby
from statistics import linear_regression, median

from pylink.bench.contenders import API, CLI, COPY, NVJITLINK, NVLINK, SERVED

# Times of links with this number of inputs or more show growth: smaller links mostly start up.
GROWTH_FROM = 100
MB = 1_000_000

CONTENDERS = (COPY, API, CLI, NVLINK, NVJITLINK)


def ratio(times: list[float], others: list[float]) -> float:
    """Return the median of times divided by others of the same round.

    If a slow contender did not run in all rounds, the ratio of the medians. NaN if one did not run.
    """
    if not times or not others:
        return math.nan
    if len(times) != len(others):
        return median(times) / median(others)
    return median(a / b for a, b in zip(times, others, strict=True))


class Outcome:
    """The links of one arch and module size at one number of inputs.

    `size` is that of a module, `count` the number of inputs. By contender, `times` are the seconds
    of each round, `rested` those of links after some seconds in which nothing ran, and `peaks` the
    peak resident bytes.
    """

    def __init__(
        self,
        arch: str,
        size: str,
        count: int,
        input_bytes: int,
        times: dict[str, list[float]],
        peaks: dict[str, int],
        rested: dict[str, list[float]],
    ) -> None:
        self.arch = arch
        self.size = size
        self.count = count
        self.input_bytes = input_bytes
        self.times = times
        self.peaks = peaks
        self.rested = rested

    def seconds(self, contender: str) -> float:
        """Return the median time of a contender; not a number if it did not run."""
        return median(self.times[contender]) if self.times.get(contender) else math.nan

    def ratio(self, contender: str, other: str) -> float:
        """Return the time of a contender as a multiple of that of `other`."""
        return ratio(self.times.get(contender, []), self.times.get(other, []))


class Report:
    """The results of the benchmarks of a session.

    * `outcomes`: links of generated cubins
    * `starts`: by architecture, the time of a small link divided by that of bare Python
    * `small`: by architecture and contender, the time of a link of the demo divided by nvlink's
    * `rates`: by group and implementation, relocations or remarks per second
    * `silences`: by kind of link, the time with diagnostics that are all filtered out, divided by
      the time without
    * `profiles`: by link, processor seconds of a plain link, of a profiled one, and of links that
      write a profile
    * `archives`: by link, nvlink's time divided by pylink's, nvlink's time divided by that of
      copying and decompressing, and the goal for the first
    * `jitlink`: by architecture, milliseconds of a link and of each of several at once, with the
      stand-in and then with nvJitLink
    * `growth`: by architecture and number of tiny inputs, processor seconds of a link and of a
      copy, and bytes of memory
    """

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.starts: dict[str, float] = {}
        self.small: dict[str, dict[str, float]] = {}
        self.rates: dict[tuple[str, str], float] = {}
        self.silences: dict[str, float] = {}
        self.profiles: dict[str, dict[str, list[float]]] = {}
        self.archives: dict[str, tuple[float, float, float]] = {}
        self.jitlink: dict[str, tuple[float, float, float, float]] = {}
        self.growth: dict[str, dict[int, tuple[float, float, int]]] = {}

    def lines(self) -> list[str]:
        """Return the lines of the report, by kind of measurement."""
        lines = []
        for _, links in groupby(self.outcomes, lambda outcome: (outcome.arch, outcome.size)):
            same = sorted(links, key=lambda outcome: outcome.count)
            lines += [*table(same), *goals(same), ""]
        for arch, by_count in self.growth.items():
            lines += growth_of_tiny(arch, by_count)
        for arch, ratio in self.starts.items():
            lines.append(f"sm_{arch}, 2 inputs: a CLI process / python -c pass")
            lines.append(verdict("CLI / python -c pass", ratio, 1.25, least=False))
        for arch, ratios in self.small.items():
            lines.append(f"sm_{arch}, the demo: a CLI process / nvlink's {ratios[CLI]:.2f}")
            lines.append(verdict("client of pylink serve / nvlink", ratios[SERVED], 1, least=False))
        for link, times in self.profiles.items():
            lines += costs_of_profiles(link, times)
        for (group, name), rate in self.rates.items():
            lines.append(f"{group}: {name} {rate / 1e6:.2f} million a second")
            if name == "kernel":
                lines.append(verdict("million relocations a second", rate / 1e6, 100, least=True))
            elif name.startswith("bitstream"):
                lines.append(verdict("million remarks a second", rate / 1e6, 0.3, least=True))
        for name, (ratio, bound, goal) in self.archives.items():
            lines.append(verdict(f"archive, {name}: nvlink / pylink", ratio, goal, least=True))
            lines.append(f"         bound: nvlink / copy and decompression {bound:.2f}")
        for arch, (single, several, real_single, real_several) in self.jitlink.items():
            lines.append(
                f"{arch}, 13 cubins through cuda.core: {single:.2f} ms, "
                f"in 8 threads {several:.2f}; "
                f"nvJitLink {real_single:.2f} and {real_several:.2f}"
            )
            lines.append(verdict("nvJitLink / stand-in", real_single / single, 1, least=True))
        for name, ratio in self.silences.items():
            lines.append(verdict(f"{name} / plain", ratio, 1.02, least=False))
        return lines


def growth_of_tiny(arch: str, by_count: dict[int, tuple[float, float, int]]) -> list[str]:
    """Return lines on links of tiny modules, with exponents e of time and memory ~ inputs ** e."""
    lines = [f"sm_{arch}, tiny modules through the API"]
    lines += [
        f"  {count:6} inputs: {1000 * linked:9.1f} ms of processor time, "
        f"copy {1000 * copied:9.1f} ms, {rss / MB:7.1f} MB"
        for count, (linked, copied, rss) in by_count.items()
    ]
    counts = [math.log(count) for count in by_count]
    time, copy_time, memory = (
        linear_regression(counts, [math.log(max(value, 1e-9)) for value in column]).slope
        for column in zip(*by_count.values(), strict=True)
    )
    lines += [
        verdict("growth exponent of processor time", time, 1.05, least=False),
        f"         growth exponent of a copy's processor time: {copy_time:.2f}",
        verdict("exponent of a link / of a copy", time / copy_time, 1.05, least=False),
        verdict("growth exponent of memory", memory, 1.05, least=False),
    ]
    return lines


def growth_exponent(outcomes: list[Outcome], contender: str) -> float:
    """Return the exponent e of time ~ inputs ** e, by least squares over the logarithms.

    Only the fastest round of each number of inputs counts: other programs disturb long runs more
    than short ones, which is not growth. NaN for fewer than two numbers of inputs.
    """
    points = [
        (math.log(outcome.count), math.log(min(outcome.times[contender])))
        for outcome in outcomes
        if outcome.count >= GROWTH_FROM and outcome.times.get(contender)
    ]
    if len(points) < 2:
        return math.nan
    return linear_regression(*zip(*points, strict=True)).slope


def table(outcomes: list[Outcome]) -> list[str]:
    """Return the lines for an architecture and a module size; `outcomes` are sorted by inputs."""
    first = outcomes[0]
    lines = [
        f"sm_{first.arch}, modules of {first.input_bytes / first.count / 1000:.1f} kB",
        f"  {'inputs':>6}"
        + "".join(f"{name + ' ms':>15}" for name in CONTENDERS)
        + "  API/copy  nvlink/API  nvlink/CLI  nvJitLink/API  MB: input   API   CLI nvlink",
    ]
    for outcome in outcomes:
        times = "".join(f"{outcome.seconds(name) * 1000:15.1f}" for name in CONTENDERS)
        ratios = (
            f"{outcome.ratio(API, COPY):10.2f}{outcome.ratio(NVLINK, API):12.1f}"
            f"{outcome.ratio(NVLINK, CLI):12.1f}{outcome.ratio(NVJITLINK, API):15.1f}"
        )
        peaks = "".join(
            f"{outcome.peaks.get(name, math.nan) / MB:6.0f}" for name in (API, CLI, NVLINK)
        )
        lines.append(f"  {outcome.count:6}{times}{ratios}{outcome.input_bytes / MB:11.1f}{peaks}")
    for outcome in outcomes:
        rested_times = {name: times for name, times in outcome.rested.items() if times}
        if rested_times:
            rested = ", ".join(
                f"{name} {1000 * median(all_):.1f} ms" for name, all_ in rested_times.items()
            )
            cli, api = (ratio(outcome.rested[name], outcome.rested[COPY]) for name in (CLI, API))
            factors = f"API/copy {api:.2f}, CLI/copy {cli:.2f}"
            lines.append(f"  {outcome.count:6} after a rest: {rested}, {factors}")
    if not math.isnan(growth_exponent(outcomes, COPY)):
        exponents = ", ".join(
            f"{name} {growth_exponent(outcomes, name):.2f}" for name in CONTENDERS
        )
        lines.append(f"  growth exponent from {GROWTH_FROM} inputs: {exponents}")
    return lines


def goals(outcomes: list[Outcome]) -> list[str]:
    """Return a line for each goal that was measured for one architecture and module size."""
    mercury = outcomes[0].arch == "100"  # whether files have Mercury sections, which nvlink keeps
    lines = [
        verdict("growth exponent of the API", growth_exponent(outcomes, API), 1.1, least=False)
    ]
    for outcome in outcomes:
        api, cli = outcome.ratio(NVLINK, API), outcome.ratio(NVLINK, CLI)
        if outcome.count == (100 if mercury else 400):
            lines.append(verdict(f"nvlink / CLI at {outcome.count}", cli, 1, least=True))
        if outcome.count == 1600:
            floor = outcome.ratio(API, COPY)
            rested = ratio(outcome.rested[API], outcome.rested[COPY])
            room = 4 * outcome.input_bytes / MB + 40
            lines += [
                verdict("nvlink / API at 1600", api, 40 if mercury else 2, least=True),
                verdict("nvlink / CLI at 1600", cli, 30 if mercury else 1.5, least=True),
                verdict("API / copy at 1600", floor, 1.5, least=False),
                verdict("API / copy at 1600, rested", rested, 1.5, least=False),
                verdict("peak MB of the CLI at 1600", outcome.peaks[CLI] / MB, room, least=False),
            ]
    return [line for line in lines if line]


def costs_of_profiles(link: str, times: dict[str, list[float]]) -> list[str]:
    """Return the lines on the processor time of profiled links.

    `times` has the plain link first, then the profiled one, then those that write files.
    """
    plain, collected, *files = times
    lines = [f"{link}: processor time of a link with a profile / without"]
    for name in files:
        time, other = median(times[name]), median(times[plain])
        lines.append(f"  {name:16} {time / other:6.2f}  {1000 * (time - other):+8.1f} ms")
    cost = ratio(times[collected], times[plain])
    lines.append(verdict("collecting a profile / plain", cost, 1.05, least=False))
    return lines


def verdict(goal: str, got: float, limit: float, *, least: bool) -> str:
    """Return a line that says whether a goal is met; empty if it was not measured.

    `got` must be at least `limit` with `least`, else at most.
    """
    if math.isnan(got):
        return ""
    met = got >= limit if least else got <= limit
    return (
        f"  {'met' if met else 'MISSED':6} {goal}: {got:.2f} ({'>=' if least else '<='} {limit:g})"
    )
