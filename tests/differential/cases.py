"""Cases on disk: the cubins of a program for one arch, and what nvlink made of them per variant.

A case is a folder with m0.cubin, m1.cubin, ..., their sources, what nvlink wrote for each variant
(VARIANT.nvlink.cubin, VARIANT.stdout, VARIANT.stderr) and link.json, which says how to repeat it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from differential.variants import VARIANTS, Link
from helpers import oracle
from helpers.programs import Program


@dataclass(frozen=True)
class Expected:
    """One link of a case and nvlink's answer; `image` is the file name of its output or None."""

    variant: str
    link: Link
    code: int
    image: str | None

    def stderr(self, folder: Path) -> str:
        return (folder / f"{self.variant}.stderr").read_text(errors="surrogateescape")

    def stdout(self, folder: Path) -> str:
        return (folder / f"{self.variant}.stdout").read_text(errors="surrogateescape")

    def image_bytes(self, folder: Path) -> bytes | None:
        return (folder / self.image).read_bytes() if self.image else None


@dataclass(frozen=True)
class Case:
    """A folder of cubins with nvlink's answers for one arch."""

    folder: Path
    arch: str
    links: tuple[Expected, ...]

    @property
    def name(self) -> str:
        return f"{self.arch}/{self.folder.name}"


def load(folder: Path) -> Case:
    """Read a case that `prepare` wrote."""
    record = json.loads((folder / "link.json").read_text())
    links = tuple(
        Expected(
            variant,
            Link(tuple(entry["inputs"]), tuple(entry["options"]), entry["arch"]),
            entry["code"],
            entry["image"],
        )
        for variant, entry in record["variants"].items()
    )
    return Case(folder, record["arch"], links)


def _recorded(folder: Path) -> dict[str, dict[str, object]]:
    path = folder / "link.json"
    variants: dict[str, dict[str, object]] = {}
    if path.is_file():
        variants = json.loads(path.read_text())["variants"]
    return variants


def prepare(program: Program, arch: str, variants: Iterable[str], folder: Path) -> Case:
    """Compile a program for `arch`, run nvlink's side of each variant, and store both."""
    folder.mkdir(parents=True, exist_ok=True)
    cubins: list[str] = []
    for module in program.modules:
        name = f"m{len(cubins)}.cubin"
        image = oracle.compile(module.source, arch, module.flags, name=module.name)
        (folder / name).write_bytes(image)
        (folder / f"m{len(cubins)}{Path(module.name).suffix}").write_text(module.source)
        cubins.append(name)
    recorded = _recorded(folder)
    for variant in variants:
        link = VARIANTS[variant](program, arch, cubins)
        if link is None:
            continue
        for step, before in link.first:
            oracle.run_nvlink(before.argv(step), folder)
        if not all((folder / step).is_file() for step, _ in link.first):
            continue  # the first stage of a two-stage link failed: nothing to continue from
        output = f"{variant}.nvlink.cubin"
        result = oracle.run_nvlink(link.argv(output), folder, output)
        (folder / f"{variant}.stdout").write_text(result.stdout, errors="surrogateescape")
        (folder / f"{variant}.stderr").write_text(result.stderr, errors="surrogateescape")
        recorded[variant] = {
            "inputs": link.inputs,
            "options": link.options,
            "arch": link.arch,
            "argv": ["nvlink", *link.argv(output)],
            "code": result.code,
            "image": output if result.image is not None else None,
        }
    record = {
        "arch": arch,
        "seed": program.seed,
        "level": program.level,
        "features": program.features,
        "flags": [module.flags for module in program.modules],
        "variants": recorded,
    }
    (folder / "link.json").write_text(json.dumps(record, indent=1) + "\n")
    return load(folder)
