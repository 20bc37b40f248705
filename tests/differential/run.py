"""Compare pylink with nvlink on generated programs.

    PYTHONPATH=tests python -m differential.run --seeds 0:20 --archs 75,90a,100 --variants exec,r

Prints a verdict for each link that differs and a table of equal links per arch and variant.
Folders of failing cases stay below --keep for `differential.check` to repeat.
"""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from differential import cases, check
from differential.variants import VARIANTS
from helpers import oracle, programs


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
    arguments = parser.parse_args()
    archs = oracle.ARCHS if arguments.archs == "all" else tuple(arguments.archs.split(","))
    variants = tuple(VARIANTS if arguments.variants == "all" else arguments.variants.split(","))
    tally = check.Tally()
    for seed in arguments.seeds:
        program = programs.generate(seed, arguments.level)
        for arch in archs:
            folder = arguments.keep / arch / f"l{program.level}_{seed:04d}"
            case = cases.prepare(program, arch, variants, folder)
            if arguments.only_nvlink:
                print(case.name, *(f"{link.variant}={link.code}" for link in case.links))
                continue
            if check.check_case(case, tally, variants, brief=arguments.brief):
                shutil.rmtree(folder)
    if not arguments.only_nvlink:
        tally.print()
    return 1 if tally.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
