"""Random CUDA programs of several modules, on which the linker is compared with nvlink.

A program has a few modules, each a source with its own compiler flags. `generate(seed)` is a pure
function of the seed. Seeds below LADDER_SEEDS go from a single kernel to all features, so that the
first failing seed of a sweep is also one of the simplest; the level of later seeds is random.

The results of the code do not matter, only what the compiler emits for it. Each feature is a
function of `programs_features` (CUDA C++) or `programs_ptx` (PTX, for what C++ cannot express).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from helpers import programs_features, programs_kernels, programs_ptx
from helpers.programs_draft import Draft, Feature, Module, ModuleDraft

__all__ = ["Module", "Program", "generate", "level_of"]

DEBUG_MODES = ("none", "none", "-lineinfo", "-G", "mixed")


@dataclass(frozen=True)
class Program:
    """A program: modules in link order, the features in them, and names for options."""

    seed: int
    level: int
    modules: tuple[Module, ...]
    features: tuple[str, ...]
    kernels: tuple[str, ...]
    variables: tuple[str, ...]
    device_runtime: bool  # links need libcudadevrt.a


# By level: fewest modules, most modules, fewest features, most features.
SHAPE = (
    (1, 1, 1, 1),
    (1, 1, 2, 3),
    (2, 2, 2, 4),
    (2, 3, 3, 5),
    (2, 4, 4, 7),
    (2, 5, 5, 9),
    (3, 8, 6, 14),
)
LADDER_SEEDS = 2 * len(SHAPE)

# From this seed on programs also have the features of LATER, and modules of other -O levels.
LATER_SEEDS = 1000


def level_of(seed: int) -> int:
    """Return the level of a seed: two seeds for each level, then levels 3 to 6 at random."""
    if seed < LADDER_SEEDS:
        return seed // 2
    return random.Random(f"level {seed}").choice((3, 4, 5, 6))


def generate(seed: int, level: int | None = None) -> Program:
    """Return the program of a seed, the same on every machine and run."""
    level = level_of(seed) if level is None else level
    rng = random.Random(f"program {seed} {level}")
    fewest, most, low, high = SHAPE[level]
    draft = Draft(rng, [ModuleDraft(i) for i in range(rng.randint(fewest, most))])
    pool: list[tuple[Feature, int]] = list(programs_features.FEATURES[: 4 + 7 * level])
    if level >= 4:
        pool += programs_ptx.FEATURES
    if seed >= LATER_SEEDS:
        pool += programs_features.LATER
    feature_count = rng.randint(low, high)
    for module in draft.modules:
        programs_kernels.plain_kernel(draft, module)
    features = [feature for feature, _ in pool]
    weights = [weight for _, weight in pool]
    for feature in rng.choices(features, weights, k=feature_count):
        draft.features.append(feature.__name__)
        feature(draft)
    mode = rng.choice(DEBUG_MODES) if level >= 2 else "none"
    modules = [
        Module(f"m{i}.cu", module.render(), _flags(rng, mode, level, seed))
        for i, module in enumerate(draft.modules)
    ]
    modules += draft.ptx
    if level >= 3:
        rng.shuffle(modules)
    return Program(
        seed,
        level,
        tuple(modules),
        tuple(draft.features),
        tuple(draft.kernels),
        tuple(draft.variables),
        draft.device_runtime,
    )


def _flags(rng: random.Random, mode: str, level: int, seed: int) -> tuple[str, ...]:
    """Return random flags of the compiler for a module."""
    flags = []
    choice = rng.choice(("none", "-lineinfo", "-G")) if mode == "mixed" else mode
    if choice != "none":
        flags.append(choice)
    if level >= 4 and rng.random() < 0.15:
        flags.append(f"-maxrregcount={rng.choice((24, 32, 64))}")
    if seed >= LATER_SEEDS and choice != "-G" and rng.random() < 0.3:
        flags.append(rng.choice(("-O0", "-O1")))
    return tuple(flags)
