"""The generator of programs: the same on every run, and rich enough to mean something."""

from __future__ import annotations

from helpers import programs, programs_features, programs_ptx


def test_a_seed_gives_the_same_program_again() -> None:
    assert [programs.generate(seed) for seed in range(30)] == [
        programs.generate(seed) for seed in range(30)
    ]


def test_seeds_differ() -> None:
    sources = {programs.generate(seed).modules[0].source for seed in range(60)}
    assert len(sources) == 60


def test_every_feature_occurs_in_some_program() -> None:
    pool = [feature.__name__ for feature, _ in programs_features.FEATURES]
    pool += [feature.__name__ for feature, _ in programs_ptx.FEATURES]
    used = {feature for seed in range(300) for feature in programs.generate(seed).features}
    assert used == set(pool)
    later = {feature.__name__ for feature, _ in programs_features.LATER}
    seeds = range(programs.LATER_SEEDS, programs.LATER_SEEDS + 100)
    made = [programs.generate(seed) for seed in seeds]
    assert later <= {feature for program in made for feature in program.features}
    flags = {flag for program in made for module in program.modules for flag in module.flags}
    assert flags >= {"-O0", "-O1", "-G", "-lineinfo"}


def test_programs_have_one_to_eight_modules_of_cuda_and_mixed_flags() -> None:
    made = [programs.generate(seed) for seed in range(300)]
    counts = {sum(m.name.endswith(".cu") for m in program.modules) for program in made}
    flags = {flag for program in made for module in program.modules for flag in module.flags}
    assert counts == set(range(1, 9))
    assert {"-G", "-lineinfo", "-maxrregcount=24"} <= flags
