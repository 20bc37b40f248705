"""One link to try: a program, what is changed in it, how it is wrapped, and the options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from differential.variants import NEWER

from fuzz import corpus, edits, wrapping
from fuzz.draft import Draft

# Options that change the image, as words of both tools and as arguments of `pylink.link`.
OPTIONS: dict[str, dict[str, Any]] = {
    "-r": {"relocatable_link": True},
    "-g": {"debug": True},
    "-preserve-relocs": {"preserve_relocs": True},
    "-suppress-debug-info": {"suppress_debug_info": True},
    "-use-host-info": {"use_host_info": True},
    "-ignore-host-info": {"ignore_host_info": True},
    "-keep-system-libraries": {"keep_system_libraries": True},
    "-Werror": {"warning_as_error": True},
    "-extrawarn": {"extra_warnings": True},
    "-report-arch": {"report_arch": True},
    "-v": {"verbose": True},
    "-dump-callgraph": {"dump_callgraph": True},
}

# What pylink alone has and what must not change the image.
EXTRAS: dict[str, dict[str, Any]] = {
    "text": {"diagnostics_format": "text"},
    "sarif": {"diagnostics_format": "sarif"},
    "map": {"Map": "out.map"},
    "depfile": {"depfile": "out.d"},
    "remarks": {"pass_remarks_output": "out.yaml"},
    "bitstream": {"pass_remarks_output": "out.bit", "pass_remarks_format": "bitstream"},
    "profile": {"profile": True},
    "trace": {"time_trace": "out.json"},
}

# Options that name what stays, and the types of the symbols that they can name.
USED = {"--kernels-used": (2,), "--variables-used": (1, 13)}


@dataclass(frozen=True)
class Change:
    """An edit of one input, by the number of that."""

    image: int
    edit: str
    seed: str


@dataclass(frozen=True)
class Job:
    """What to link; `words` are options of both tools, `extras` names of pylink's own."""

    number: str
    program: str
    arch: str
    changes: tuple[Change, ...] = ()
    wrapping: str = wrapping.BARE
    wrapping_seed: str = ""
    words: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
    order: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Job:
        lists = {name: tuple(values[name]) for name in ("words", "extras", "left_out")}
        changes = tuple(Change(**value) for value in values["changes"])
        return cls(**{**values, **lists, "changes": changes})

    def inputs(self) -> list[tuple[str, bytes]]:
        """Names and contents of the files."""
        _, given = corpus.program(self.program)
        images = list(given)
        for change in self.changes:
            others = [image for n, image in enumerate(images) if n != change.image]
            images[change.image] = edits.apply(
                images[change.image], change.edit, change.seed, others
            )
        images = [image for n, image in enumerate(images) if n not in self.left_out]
        if self.order:
            Random(self.order).shuffle(images)
        return wrapping.wrap(self.wrapping, images, self.arch, self.wrapping_seed)

    def keywords(self) -> dict[str, Any]:
        """The options as arguments of `pylink.link`."""
        found: dict[str, Any] = {"merc_dedup": "off"}  # nvlink folds less than pylink
        for word in self.words:
            name, equals, value = word.partition("=")
            found |= {name[2:].replace("-", "_"): value.split(",")} if equals else OPTIONS[word]
        for extra in self.extras:
            found |= EXTRAS[extra]
        return found


def draw(seed: int, number: int, programs: tuple[str, ...], *, sound: bool = False) -> Job:
    """The job of a number; the same for equal arguments.

    `sound` ones break no rule of the formats; of all together one in five is such.
    """
    label = f"{seed}-{number}"
    rng = Random(label)
    sound = sound or rng.random() < 0.2
    name = rng.choice(programs)
    arch, images = corpus.program(name)
    changes = []
    for at in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        usable = [name for name, row in edits.EDITS.items() if not sound or row.is_sound(arch)]
        edit = rng.choice(usable)
        changes.append(Change(rng.randrange(len(images)), edit, f"{label}-{at}"))
    kind = wrapping.BARE if rng.random() < 0.8 else rng.choice(wrapping.KINDS[1:])
    wrapping_seed = ""
    if kind != wrapping.BARE and rng.random() < 0.6 and not sound:
        wrapping_seed = f"{label}-wrapping"
        changes = changes[: rng.randrange(2)]
    words = [] if rng.random() < 0.5 else rng.sample(sorted(OPTIONS), rng.choice((1, 1, 2, 3)))
    if rng.random() < 0.1:
        option = rng.choice(sorted(USED))
        words.append(f"{option}={_some_name(images, USED[option], rng)}")
    extras = [] if rng.random() < 0.6 else rng.sample(sorted(EXTRAS), rng.choice((1, 1, 2)))
    if rng.random() < 0.1:
        arch = NEWER.get(arch, arch)
    return Job(
        label,
        name,
        arch,
        tuple(changes),
        kind,
        wrapping_seed,
        tuple(words),
        tuple(extras),
        order=f"{label}-order" if rng.random() < 0.2 else "",
    )


def _some_name(images: tuple[bytes, ...], types: tuple[int, ...], rng: Random) -> str:
    """The name of a symbol of one of these types, where the program has one."""
    draft = Draft(rng.choice(images))
    names = [
        draft.symbol_name(number).decode()
        for number in range(draft.symbol_count)
        if draft.peek(draft.symbol_at(number) + 4, 1) & 15 in types
    ]
    # Not what the compiler calls so for itself.
    names = [name for name in names if re.match(r"[A-Za-z]|_[A-Z]", name)]
    return rng.choice(names or ["none"])
