"""Link programs that nobody here wrote with nvlink and with pylink, and compare the outputs.

    python scripts/real_programs.py TABLE.json --checkouts FOLDER [--archs 80,90a] [--only nccl]

TABLE names programs, one row each, of repositories that the user has in FOLDER: as a checkout
(FOLDER/NAME) or as a bare clone (FOLDER/NAME, FOLDER/NAME.git or FOLDER/OWNER+NAME/repo). Nothing
is fetched. docs/real-programs.md describes the table and the report. Needs the oracle's tools
(pip install '.[oracle]').
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from differential.check import as_pylink
from hazards import collected
from helpers import oracle
from helpers.compare import compare
from helpers.fatbin_builder import SEGMENT, container, entry, host_object
from helpers.lto_sources import write_nvvm
from helpers.words import without_notes
from program_sources import (
    CUBIN,
    FLAVOURS,
    IR,
    Program,
    compile_all,
    find_checkout,
    read_table,
    write_made,
)

LINK_LIMIT = 300  # seconds
EQUAL, DIFFERS, REFUSED, MESSAGES = "equal", "differs", "refused", "messages"


@dataclass
class Outcome:
    """One link: how pylink's result compares with nvlink's."""

    program: str
    arch: str
    link: str
    verdict: str
    details: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """What one linker did."""

    code: int
    said: str
    image: bytes | None


def run(argv: Sequence[str], folder: Path, output: str) -> Run:
    (folder / output).unlink(missing_ok=True)
    done = subprocess.run(
        [*argv, "-o", output],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=LINK_LIMIT,
    )
    path = folder / output
    image = path.read_bytes() if path.is_file() else None
    return Run(done.returncode, (done.stdout + done.stderr).replace(output, "OUTPUT"), image)


def compare_link(words: Sequence[str], folder: Path) -> tuple[str, list[str]]:
    """The verdict on one link, and in what the outputs or the messages differ."""
    (folder / REGISTERED).unlink(missing_ok=True)
    theirs = run([oracle.toolchain().tool("nvlink"), *words], folder, "nvlink.out")
    their_list = _text(folder / REGISTERED)
    # nvlink keeps what repeats: docs/dedup.md.
    ours = run([sys.executable, "-m", "pylink", "--merc-dedup=off", *words], folder, "pylink.out")
    if theirs.code == 0 and ours.code:
        return REFUSED, ours.said.splitlines()[:5]
    found = []
    if theirs.image is not None and ours.image is not None:
        found = compare(ours.image, theirs.image)
    if _text(folder / REGISTERED) != their_list:
        found.append("the list of what host code registers")
    if found:
        return DIFFERS, found
    if ours.code != theirs.code:
        return MESSAGES, [f"exit status {ours.code}, nvlink {theirs.code}", *ours.said.splitlines()]
    expected, said = as_pylink(theirs.said), without_notes(ours.said)
    if said != expected:
        pairs = zip(said.splitlines(), expected.splitlines(), strict=False)
        return MESSAGES, [f"{a!r}, nvlink {b!r}" for a, b in pairs if a != b][:5] or ["length"]
    return EQUAL, []


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def whole(inputs: list[str], _folder: Path, _arch: str) -> list[str]:
    return inputs


def archived(inputs: list[str], folder: Path, arch: str) -> list[str] | None:
    """All as host objects, all but the first in an archive: nvlink links no other members."""
    if len(inputs) < 2:
        return None
    (folder / "lib.a").unlink(missing_ok=True)
    objects = []
    for name in inputs:
        if name.endswith(".o"):
            objects.append(name)
            continue
        code = container(entry((folder / name).read_bytes(), int(arch.rstrip("af"))))
        objects.append(name.replace(".cubin", ".o"))
        (folder / objects[-1]).write_bytes(host_object([("__nv_relfatbin", code), SEGMENT]))
    subprocess.run(["ar", "crD", "lib.a", *objects[1:]], cwd=folder, check=True)
    return [objects[0], "lib.a"]


def staged(inputs: list[str], folder: Path, arch: str) -> list[str] | None:
    """One object that nvlink made with -r."""
    nvlink = oracle.toolchain().tool("nvlink")
    made = run([nvlink, f"-arch=sm_{arch}", "-r", *inputs], folder, "stage1.cubin")
    return ["stage1.cubin"] if made.code == 0 else None


def staged_part(inputs: list[str], folder: Path, arch: str) -> list[str] | None:
    """The first half as one object that nvlink made with -r, then the rest."""
    if len(inputs) < 2:
        return None
    cut = (len(inputs) + 1) // 2
    stage = staged(inputs[:cut], folder, arch)
    return [*stage, *inputs[cut:]] if stage else None


Prepare = Callable[[list[str], Path, str], "list[str] | None"]

# The file of `register`, in the folder of the links.
REGISTERED = "registered.c"

# What `newer` links for: a later chip of the family that runs the code.
NEWER = {"80": "86", "86": "89", "100": "103", "120": "121"}

# Name of a link: its options, and what becomes of the objects before it.
LINKS: dict[str, tuple[tuple[str, ...], Prepare]] = {
    "exec": ((), whole),
    "verbose": (("-v",), whole),
    "r": (("-r",), whole),
    "g": (("-g",), whole),
    "register": ((f"--register-link-binaries={REGISTERED}",), whole),
    "archive": ((), archived),
    "newer": ((), whole),
    "relink": ((), staged),
    "relink-part": ((), staged_part),
}


def link_program(
    program: Program,
    arch: str,
    flavour_name: str,
    cubins: Sequence[Path],
    names: Iterable[str],
    at: Path,
) -> list[Outcome]:
    """All links of the compiled program; the folder `at` keeps the inputs of those that differ."""
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    flavour = FLAVOURS[flavour_name]
    inputs = [f"m{number}{flavour.suffix}" for number in range(len(cubins))]
    for name, cubin in zip(inputs, cubins, strict=True):
        shutil.copy(cubin, at / name)
    if flavour.kind == IR:
        write_nvvm(at)
    library = [f"-L{oracle.device_runtime()}", "-lcudadevrt"]
    outcomes = []
    for name in names:
        options, prepare = LINKS[name]
        is_staged = "-r" in options or prepare in (staged, staged_part)
        if (flavour.is_linked_once and is_staged) or (name == "register" and flavour.kind == CUBIN):
            continue
        prepared = prepare(inputs, at, arch)
        if prepared is None:
            continue
        if name == "newer" and (arch not in NEWER or flavour.is_linked_once):
            continue
        target = NEWER[arch] if name == "newer" else arch
        words = [f"-arch=sm_{target}", *flavour.words, *options, *prepared]
        if "-r" not in options:
            words += library
        label = name if flavour_name == "plain" else f"{name}, {flavour_name}"
        try:
            verdict, details = compare_link(words, at)
        except subprocess.TimeoutExpired:
            verdict, details = REFUSED, [f"more than {LINK_LIMIT} seconds"]
        outcomes.append(Outcome(program.name, arch, label, verdict, details))
        if verdict == EQUAL:
            continue
        (at / f"{name}.txt").write_text(" ".join(words) + "\n" + "\n".join(details) + "\n")
    if all(outcome.verdict == EQUAL for outcome in outcomes):
        shutil.rmtree(at)
    return outcomes


def show(outcomes: Sequence[Outcome], skipped: Sequence[str]) -> None:
    """One line for each program, the kinds of differences, and a sum."""
    for name in dict.fromkeys(outcome.program for outcome in outcomes):
        counts = Counter(outcome.verdict for outcome in outcomes if outcome.program == name)
        print(f"{name:40}", ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    print()
    for outcome in outcomes:
        if outcome.verdict != EQUAL:
            print(f"{outcome.program} sm_{outcome.arch} {outcome.link}: {outcome.verdict}")
            for line in outcome.details[:3]:
                print(f"    {line[:240]}")
    for line in skipped:
        print(f"not compiled: {line}")
    counts = Counter(outcome.verdict for outcome in outcomes)
    programs = len({outcome.program for outcome in outcomes})
    text = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in (EQUAL, DIFFERS, REFUSED, MESSAGES)
    )
    print(
        f"\n{programs} programs, {len(outcomes)} links: {text}; {len(skipped)} sources not compiled"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--checkouts", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=oracle.cache_root() / "programs")
    parser.add_argument("--archs", default="80,90a,100", help="for rows that name none")
    parser.add_argument("--release", default=oracle.DEFAULT, help="of the tools, such as 13.5")
    parser.add_argument(
        "--flavours", default="plain,lineinfo,debug", help=f"of {', '.join(FLAVOURS)}"
    )
    parser.add_argument(
        "--include", type=Path, action="append", default=[], help="headers of CUDA's libraries"
    )
    parser.add_argument("--links", default=",".join(LINKS))
    parser.add_argument("--only", default="", help="parts of program names, with commas")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--json", type=Path, help="write the outcomes to this file, too")
    arguments = parser.parse_args()
    try:
        programs = read_table(arguments.table)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    wanted = [part for part in arguments.only.split(",") if part]
    programs = [p for p in programs if not wanted or any(part in p.name for part in wanted)]
    cache, checkouts = arguments.cache.resolve(), arguments.checkouts.resolve()
    includes = tuple(f"-I{path.resolve()}" for path in arguments.include)
    jobs: list[tuple[Program, dict[str, Path], str, str]] = []
    skipped: list[str] = []
    for row in programs:
        program = replace(row, options=row.options + includes)
        places = {"made": write_made(program, cache)}
        for name in (program.repository, *program.needs):
            files = find_checkout(name, checkouts, cache)
            if files is None:
                skipped.append(f"{program.name}: no {name} in {arguments.checkouts}")
                break
            places["repo" if name == program.repository else name.rpartition("/")[2]] = files
        else:
            jobs += [
                (program, places, arch, flavour)
                for arch in program.archs or arguments.archs.split(",")
                for flavour in arguments.flavours.split(",")
            ]

    def work(job: tuple[Program, dict[str, Path], str, str]) -> list[Outcome]:
        program, places, arch, flavour = job
        cubins, failures = compile_all(program, places, FLAVOURS[flavour], arch, cache)
        skipped.extend(f"{program.name} sm_{arch} {flavour}: {text}" for text in failures)
        if not cubins:
            return []
        at = cache / "links" / f"{program.name}-{arch}-{flavour}-{arguments.release}"
        return link_program(program, arch, flavour, cubins, arguments.links.split(","), at)

    with oracle.release(arguments.release), ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = [outcome for some in pool.map(work, jobs) for outcome in some]
    hazards = list(collected.findings())
    for text in hazards:
        print(f"hazard{text}")
    for text in collected.unfollowed:
        print(f"not checked: {text}")
    print(f"{len(hazards)} hazards in code that differs from nvlink's")
    show(outcomes, skipped)
    if arguments.json:
        rows: list[dict[str, Any]] = [asdict(outcome) for outcome in outcomes]
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if hazards or any(outcome.verdict != EQUAL for outcome in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
