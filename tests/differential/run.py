"""Compare pylink with nvlink on generated programs.

    PYTHONPATH=tests python -m differential.run --seeds 0:20 --archs 75,90a,100 --variants exec,r
    PYTHONPATH=tests python -m differential.run --releases all
    PYTHONPATH=tests python -m differential.run --objects 12.4,12.9,13.0 --archs 80,90a

Prints a verdict for each link that differs and a table of equal links per arch and variant; with
several releases one per family and kind of link follows, and the tools of each are those that
`scripts/install_oracle.py` puts in place. With --objects ptxas of the releases named makes the
modules of each program in turn (`helpers.older` has how those of CUDA 12 are installed). Folders of
failing cases stay below --keep for `differential.check` to repeat.
"""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from differential import cases, check
from differential.variants import VARIANTS
from helpers import older, oracle, programs


def seeds(text: str) -> range:
    """`4` or `0:20`."""
    first, _, last = text.partition(":")
    return range(int(first), int(last) if last else int(first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--seeds", type=seeds, default=range(20))
    parser.add_argument("--level", type=int, help="one level of difficulty for all seeds")
    parser.add_argument("--archs", default="75,80,90a,100,120", help="'all' or a list with commas")
    parser.add_argument("--variants", default="exec,r", help="'all' or a list with commas")
    parser.add_argument("--keep", type=Path, default=oracle.cache_root() / "cases")
    parser.add_argument("--only-nvlink", action="store_true", help="only prepare the cases")
    parser.add_argument("--brief", action="store_true", help="one line for each difference")
    parser.add_argument(
        "--releases", default=oracle.DEFAULT, help="'all' or a list with commas, such as 13.0,13.5"
    )
    parser.add_argument("--objects", default="", help="releases whose ptxas makes the modules")
    parser.add_argument("--summary", action="store_true", help="only kinds of first differences")
    arguments = parser.parse_args()
    archs = oracle.ARCHS if arguments.archs == "all" else tuple(arguments.archs.split(","))
    variants = tuple(VARIANTS if arguments.variants == "all" else arguments.variants.split(","))
    known = tuple(oracle.VERSIONS)
    releases = known if arguments.releases == "all" else tuple(arguments.releases.split(","))
    tallies: dict[str, check.Tally] = {}
    for release in releases:
        tally = tallies[release] = check.Tally()
        with oracle.release(release):
            run_release(arguments, arguments.keep / release, archs, variants, tally)
        if not arguments.only_nvlink:
            print(f"\nrelease {release}")
            if arguments.summary:
                tally.print_kinds()
            tally.print()
    if len(releases) > 1:
        print_matrix(tallies)
    return 1 if any(tally.failed for tally in tallies.values()) else 0


def run_release(
    arguments: argparse.Namespace,
    keep: Path,
    archs: Sequence[str],
    variants: Sequence[str],
    tally: check.Tally,
) -> None:
    """All links with the tools of one release; what they make names it, and pylink follows.

    With objects of others pylink is told which release to follow.
    """
    objects = tuple(filter(None, arguments.objects.split(",")))
    left_out = 0
    for seed in arguments.seeds:
        program = programs.generate(seed, arguments.level)
        for arch in archs:
            folder = keep / "-".join(objects) / arch / f"l{program.level}_{seed:04d}"
            try:
                case = cases.prepare(program, arch, variants, folder, objects)
            except older.CannotAssemble:
                left_out += 1
                continue
            if arguments.only_nvlink:
                print(case.name, *(f"{link.variant}={link.code}" for link in case.links))
                continue
            show = 0 if arguments.summary else 5
            told = keep.name if objects else None
            if check.check_case(
                case, tally, variants, brief=arguments.brief, show=show, release=told
            ):
                shutil.rmtree(folder)
    if left_out:
        print(f"{left_out} programs are not for the tools of {arguments.objects}")


def family(arch: str) -> str:
    number = int(arch.rstrip("af"))
    return "sm_75 to 89" if number < 90 else "sm_90" if number < 100 else "sm_100 on"


def print_matrix(tallies: Mapping[str, check.Tally]) -> None:
    """Equal links of each release, family and kind of link."""
    equal: Counter[tuple[str, str, str]] = Counter()
    total: Counter[tuple[str, str, str]] = Counter()
    for release, tally in tallies.items():
        for (arch, variant), count in tally.total.items():
            total[release, family(arch), variant] += count
            equal[release, family(arch), variant] += tally.equal[arch, variant]
    columns = list(dict.fromkeys(row[1:] for row in total))
    for name in dict.fromkeys(family for family, _ in columns):
        variants = [variant for family, variant in columns if family == name]
        print(f"\n{name:12}" + "".join(f"{variant:>15}" for variant in variants))
        for release in tallies:
            cells = [(release, name, variant) for variant in variants]
            shown = (f"{equal[cell]}/{total[cell]}" for cell in cells)
            print(f"{release:12}" + "".join(f"{cell:>15}" for cell in shown))


if __name__ == "__main__":
    raise SystemExit(main())
