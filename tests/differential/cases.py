"""Cases on disk: the cubins of a program for one arch, and what nvlink made of them per variant.

A case is a folder with m0.cubin, m1.cubin, ..., nvlink's output for each variant
(VARIANT.nvlink.cubin), and link.json, which says how to repeat each link, its exit code and what it
printed. What a first stage made (stage1.cubin, part1.cubin) is kept as an input of the second, so
that one difference is not reported twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from differential.variants import LIBRARY, VARIANTS, Link
from helpers import older, oracle
from helpers.archive_builder import gnu
from helpers.programs import Module, Program

RECORD = "link.json"


@dataclass(frozen=True)
class Expected:
    """One link of a case and nvlink's answer; `image` is the file name of its output or None."""

    variant: str
    link: Link
    code: int
    image: str | None
    stdout: str
    stderr: str

    def image_bytes(self, folder: Path) -> bytes | None:
        return (folder / self.image).read_bytes() if self.image else None


@dataclass(frozen=True)
class Case:
    """A folder of cubins with nvlink's answers for one arch; `nvlink` is its version, if known.

    `release` is that of nvlink where pylink has to be told; else it follows from the cubins.
    """

    folder: Path
    arch: str
    links: tuple[Expected, ...]
    nvlink: str = ""
    release: str = ""

    @property
    def name(self) -> str:
        return f"{self.arch}/{self.folder.name}"


def load(folder: Path) -> Case:
    """Read a case that `prepare` wrote."""
    record = json.loads((folder / RECORD).read_text())
    links = tuple(
        Expected(
            variant,
            Link(tuple(entry["inputs"]), tuple(entry["options"]), entry["arch"]),
            entry["code"],
            entry["image"],
            entry["stdout"],
            entry["stderr"],
        )
        for variant, entry in record["variants"].items()
    )
    nvlink, follow = record.get("nvlink", ""), record.get("release", "")
    return Case(folder, record["arch"], links, nvlink, follow)


def compile_modules(
    modules: Sequence[Module], arch: str, folder: Path, releases: Sequence[str] = ()
) -> list[str]:
    """Write the modules' cubins into a case folder; returns their file names.

    `releases` are those whose ptxas makes them, in turn; CannotAssemble if one does not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not releases and oracle.current() in oracle.BY_LIBRARY:
        releases = (oracle.current(),)
    names = []
    for index, module in enumerate(modules):
        release = releases[index % len(releases)] if releases else ""
        image = older.compile_module(module, arch, release)
        names.append(f"m{index}.cubin")
        (folder / names[-1]).write_bytes(image)
    return names


def make_inputs(program: Program, arch: str, folder: Path, link: Link) -> None:
    """Write the host objects and archives that a link asks for."""
    members = [name for _, names in link.archives for name in names]
    for name in {*link.inputs, *members}:
        if name.endswith(".o"):
            module = program.modules[int(name[1:-2])]
            image = oracle.compile_host(module.source, arch, module.flags, name=module.name)
            (folder / name).write_bytes(image)
    for name, names in link.archives:
        (folder / name).write_bytes(gnu([(each, (folder / each).read_bytes()) for each in names]))


def record_link(
    folder: Path, variant: str, link: Link, *, keep: bool = True
) -> dict[str, Any] | None:
    """Run nvlink's side of a link; None when a first stage failed, or nvlink's stand-in cannot.

    Without `keep` only what it printed is recorded, not the image.
    """
    output = f"{variant}.nvlink.cubin"
    (folder / output).unlink(missing_ok=True)
    try:
        for step, before in link.first:
            if oracle.run_nvlink(before.argv(step), folder, step).code:
                return None
        result = oracle.run_nvlink(link.argv(output), folder, output)
    except oracle.NotLinkable:
        return None
    if not keep:
        (folder / output).unlink(missing_ok=True)
    return {
        "inputs": link.inputs,
        "options": link.options,
        "arch": link.arch,
        "argv": ["nvlink", *link.argv(output)],
        "code": result.code,
        "image": output if keep and result.image is not None else None,
        "stdout": result.stdout,
        "stderr": result.stderr,
    }


def prepare(
    program: Program,
    arch: str,
    variants: Iterable[str],
    folder: Path,
    releases: Sequence[str] = (),
) -> Case:
    """Compile a program for `arch`, run nvlink's side of each variant, and store both."""
    cubins = compile_modules(program.modules, arch, folder, releases)
    digest = hashlib.sha256(repr((program, *releases)).encode()).hexdigest()
    recorded: dict[str, Any] = {}
    if (folder / RECORD).is_file():
        record = json.loads((folder / RECORD).read_text())
        recorded = record["variants"] if record.get("program") == digest else {}
    for index, module in enumerate(program.modules):
        (folder / f"m{index}{Path(module.name).suffix}").write_text(module.source)
    for variant in variants:
        if variant in LIBRARY and oracle.current() in oracle.BY_LIBRARY:
            continue  # nvJitLink takes in all of a library, nvlink what is needed
        link = VARIANTS[variant](program, arch, cubins)
        if link:
            make_inputs(program, arch, folder, link)
        entry = link and record_link(folder, variant, link)
        if entry:
            recorded[variant] = entry
    record = {
        "arch": arch,
        "program": digest,
        "seed": program.seed,
        "level": program.level,
        "features": program.features,
        "flags": [module.flags for module in program.modules],
        "variants": recorded,
    }
    if oracle.current() in oracle.BY_LIBRARY:
        record["release"] = oracle.current()
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n")
    return load(folder)
