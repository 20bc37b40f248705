"""Link programs of public repositories with nvlink and with pylink, and compare the outputs.

    python scripts/real_programs.py TABLE.json --checkouts FOLDER [--archs 80,90a] [--only nccl]

TABLE names programs, one row each, of repositories that the user has in FOLDER: as a checkout
(FOLDER/NAME) or as a bare clone (FOLDER/NAME, FOLDER/NAME.git or FOLDER/OWNER+NAME/repo). Nothing
is fetched. docs/real-programs.md describes the table and the report. Needs the tools of CUDA 13.0
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
    FLAVORS,
    IR,
    Program,
    compile_all,
    find_places,
    read_table,
)

LINK_LIMIT = 300  # seconds
# Verdicts on a link. REFUSED: nvlink links it and pylink does not, or one takes longer than
# LINK_LIMIT. MESSAGES: only messages or exit statuses differ.
EQUAL, DIFFERS, REFUSED, MESSAGES = "equal", "differs", "refused", "messages"


@dataclass
class Outcome:
    """One link: how pylink's result compares with nvlink's, with lines about differences."""

    program: str
    arch: str
    link: str
    verdict: str
    details: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """One run of a linker: exit status, printed messages, and output (None without one)."""

    code: int
    messages: str
    image: bytes | None


def run_linker(argv: Sequence[str], folder: Path, output: str) -> Run:
    """Run a linker in a folder, where it writes the file `output`.

    In messages, OUTPUT stands for that name. TimeoutExpired after LINK_LIMIT.
    """
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


def compare_link(link_options: Sequence[str], folder: Path) -> tuple[str, list[str]]:
    """Return the verdict on one link, and lines that say how the outputs or the messages differ."""
    (folder / REGISTERED).unlink(missing_ok=True)
    nvlink_run = run_linker(
        [oracle.toolchain().tool("nvlink"), *link_options], folder, "nvlink.out"
    )
    nvlink_list = _text(folder / REGISTERED)
    # nvlink does not omit duplicate sections (docs/dedup.md).
    pylink = [sys.executable, "-m", "pylink", "--merc-dedup=off"]
    pylink_run = run_linker([*pylink, *link_options], folder, "pylink.out")
    if nvlink_run.code == 0 and pylink_run.code:
        return REFUSED, pylink_run.messages.splitlines()[:5]
    differences = []
    if nvlink_run.image is not None and pylink_run.image is not None:
        differences = compare(pylink_run.image, nvlink_run.image)
    if _text(folder / REGISTERED) != nvlink_list:
        differences.append("the list of what host code registers")
    if differences:
        return DIFFERS, differences
    if pylink_run.code != nvlink_run.code:
        statuses = f"exit status {pylink_run.code}, nvlink {nvlink_run.code}"
        return MESSAGES, [statuses, *pylink_run.messages.splitlines()]
    expected, messages = as_pylink(nvlink_run.messages), without_notes(pylink_run.messages)
    if messages != expected:
        pairs = zip(messages.splitlines(), expected.splitlines(), strict=False)
        return MESSAGES, [f"{a!r}, nvlink {b!r}" for a, b in pairs if a != b][:5] or ["length"]
    return EQUAL, []


def _text(path: Path) -> str:
    """Return the text of a file; empty if it does not exist."""
    return path.read_text() if path.is_file() else ""


# Functions of LINKS: they prepare the objects of a program, and return the inputs of the link, or
# None if this link cannot be done.


def all_inputs(inputs: list[str], _folder: Path, _arch: str) -> list[str]:
    """Return the objects as they are."""
    return inputs


def make_archive(inputs: list[str], folder: Path, arch: str) -> list[str] | None:
    """Return all objects as host objects, the first by itself and the others in an archive.

    nvlink ignores members of archives that are not host objects.
    """
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


def link_relocatable(inputs: list[str], folder: Path, arch: str) -> list[str] | None:
    """Return the output of nvlink with -r for all objects."""
    nvlink = oracle.toolchain().tool("nvlink")
    first_link = run_linker([nvlink, f"-arch=sm_{arch}", "-r", *inputs], folder, "stage1.cubin")
    return ["stage1.cubin"] if first_link.code == 0 else None


def link_half_relocatable(inputs: list[str], folder: Path, arch: str) -> list[str] | None:
    """Return nvlink's output with -r for the first half of the objects, then the other half."""
    if len(inputs) < 2:
        return None
    cut = (len(inputs) + 1) // 2
    stage = link_relocatable(inputs[:cut], folder, arch)
    return [*stage, *inputs[cut:]] if stage else None


Prepare = Callable[[list[str], Path, str], "list[str] | None"]

# The file that the link `register` writes, in the folder of the links.
REGISTERED = "registered.c"

# The target of the link `newer`: a later chip of the family, which also runs the code.
NEWER = {"80": "86", "86": "89", "100": "103", "120": "121"}

# Name of a link: its options, and the function that prepares the objects.
LINKS: dict[str, tuple[tuple[str, ...], Prepare]] = {
    "exec": ((), all_inputs),
    "verbose": (("-v",), all_inputs),
    "r": (("-r",), all_inputs),
    "g": (("-g",), all_inputs),
    "register": ((f"--register-link-binaries={REGISTERED}",), all_inputs),
    "archive": ((), make_archive),
    "newer": ((), all_inputs),
    "relink": ((), link_relocatable),
    "relink-part": ((), link_half_relocatable),
}


def link_program(
    program: Program,
    arch: str,
    flavor_name: str,
    cubins: Sequence[Path],
    names: Iterable[str],
    folder: Path,
    *,
    library_paths: Sequence[str] = (),
) -> list[Outcome]:
    """Do the links `names` of a compiled program in `folder`, which stays if a link differs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    flavor = FLAVORS[flavor_name]
    inputs = [f"m{number}{flavor.suffix}" for number in range(len(cubins))]
    for name, cubin in zip(inputs, cubins, strict=True):
        shutil.copy(cubin, folder / name)
    if flavor.kind == IR:
        write_nvvm(folder)
    library = [f"-L{oracle.device_runtime()}", *library_paths]
    library += [f"-l{name}" for name in (*program.libraries, "cudadevrt")]
    outcomes = []
    for name in names:
        options, prepare = LINKS[name]
        is_staged = "-r" in options or prepare in (link_relocatable, link_half_relocatable)
        if (flavor.is_linked_once and is_staged) or (name == "register" and flavor.kind == CUBIN):
            continue
        prepared = prepare(inputs, folder, arch)
        if prepared is None:
            continue
        if name == "newer" and (arch not in NEWER or flavor.is_linked_once):
            continue
        target = NEWER[arch] if name == "newer" else arch
        link_options = [f"-arch=sm_{target}", *flavor.link_options, *options, *prepared]
        if "-r" not in options:
            link_options += library
        label = name if flavor_name == "plain" else f"{name}, {flavor_name}"
        try:
            verdict, details = compare_link(link_options, folder)
        except subprocess.TimeoutExpired:
            verdict, details = REFUSED, [f"more than {LINK_LIMIT} seconds"]
        outcomes.append(Outcome(program.name, arch, label, verdict, details))
        if verdict == EQUAL:
            continue
        text = "\n".join([" ".join(link_options), *details, ""])
        (folder / f"{name}.txt").write_text(text)
    if all(outcome.verdict == EQUAL for outcome in outcomes):
        shutil.rmtree(folder)
    return outcomes


def print_outcomes(outcomes: Sequence[Outcome], skipped: Sequence[str]) -> None:
    """Print a line for each program, the differences, and the number of links by verdict."""
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
        "--flavors", default="plain,lineinfo,debug", help=f"of {', '.join(FLAVORS)}"
    )
    parser.add_argument(
        "--include", type=Path, action="append", default=[], help="headers of CUDA's libraries"
    )
    parser.add_argument(
        "--library-path", type=Path, action="append", default=[], help="of the rows' `libraries`"
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
    name_parts = [part for part in arguments.only.split(",") if part]
    programs = [p for p in programs if not name_parts or any(part in p.name for part in name_parts)]
    cache, checkouts = arguments.cache.resolve(), arguments.checkouts.resolve()
    includes = tuple(f"-I{path.resolve()}" for path in arguments.include)
    library_paths = [f"-L{path.resolve()}" for path in arguments.library_path]
    jobs: list[tuple[Program, dict[str, Path], str, str]] = []
    skipped: list[str] = []
    for row in programs:
        program = replace(row, options=row.options + includes)
        places = find_places(program, checkouts, cache)
        if isinstance(places, str):
            skipped.append(f"{program.name}: no {places} in {arguments.checkouts}")
            continue
        jobs += [
            (program, places, arch, flavor)
            for arch in program.archs or arguments.archs.split(",")
            for flavor in arguments.flavors.split(",")
        ]

    def work(job: tuple[Program, dict[str, Path], str, str]) -> list[Outcome]:
        """Compile and link one program for an architecture and flavor; returns the outcomes."""
        program, places, arch, flavor = job
        cubins, failures = compile_all(program, places, FLAVORS[flavor], arch, cache)
        skipped.extend(f"{program.name} sm_{arch} {flavor}: {text}" for text in failures)
        if not cubins:
            return []
        folder = cache / "links" / f"{program.name}-{arch}-{flavor}-{arguments.release}"
        links = arguments.links.split(",")
        return link_program(
            program, arch, flavor, cubins, links, folder, library_paths=library_paths
        )

    with oracle.release(arguments.release), ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = [outcome for some in pool.map(work, jobs) for outcome in some]
    hazards = list(collected.findings())
    for text in hazards:
        print(f"hazard{text}")
    for text in collected.unfollowed:
        print(f"not checked: {text}")
    print(f"{len(hazards)} hazards in code that differs from nvlink's")
    print_outcomes(outcomes, skipped)
    if arguments.json:
        rows: list[dict[str, Any]] = [asdict(outcome) for outcome in outcomes]
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if hazards or any(outcome.verdict != EQUAL for outcome in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
