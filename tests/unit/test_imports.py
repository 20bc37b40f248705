"""Modules stand above each other: no circle of imports, at the top of modules or inside functions.

The names that `pylink` itself gives to callers do not count: nothing inside takes them from there.
"""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pylink

PACKAGE = Path(pylink.__file__).parent
ROOT = Path(__file__).parents[2]
# Rules run in Nsight Compute.
APART = ("report/stock",)
# Functions that rules of Nsight Compute call as attributes of a module.
PUBLIC = [
    "src/pylink/report/rules/nvrules.py: get_evaluator",
    "src/pylink/report/rules/nvrules.py: metric_instances",
]


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        inside = path.relative_to(PACKAGE.parent)
        if not inside.relative_to("pylink").as_posix().startswith(APART):
            name = ".".join(inside.with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def run_time(node: ast.AST) -> Iterator[ast.stmt]:
    """The imports below a node, without those of `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        yield from run_time(child)


def imported(path: Path, known: dict[str, Path], *, types: bool = False) -> set[str]:
    names = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if types else run_time(tree):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}: a relative import"
            inner = {f"{node.module}.{name.name}" for name in node.names}
            names |= inner & set(known) or {node.module}
    return names & set(known)


def check(graph: dict[str, set[str]]) -> None:
    graph["pylink"] = set()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" needs ".join(reversed(error.args[1]))) from None


def test_there_is_no_circle_of_imports() -> None:
    known = modules()
    assert len(known) > 200
    check({name: imported(path, known) - {name} for name, path in known.items()})


def test_types_stand_above_each_other() -> None:
    """With what type checkers import: a type is in a module below all that speak of it."""
    known = modules()
    graph = {name: imported(path, known, types=True) - {name} for name, path in known.items()}
    check(graph)


def test_the_picture_of_the_floors_is_that_of_the_contract() -> None:
    """What is wrong here is mended by `python scripts/draw_floors.py > docs/floors.svg`."""
    command = [sys.executable, str(ROOT / "scripts" / "draw_floors.py")]
    drawn = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (ROOT / "docs" / "floors.svg").read_text(encoding="utf-8") == drawn
    rooms = set(re.findall(r"<text [^>]*>(\w+)</text>", drawn))
    assert rooms == {name.split(".")[1] for name in modules() if "." in name} - {"__main__"} | {
        "_native"
    }


# Names in tests that are no modules: files that links write, and one module that must be missing.
NO_MODULES = {"pylink.cubin", "pylink.out", "pylink._native.absent"}


def test_modules_that_tests_name_in_strings_exist() -> None:
    """A test that keeps a module out, or replaces it, guards nothing once the module has moved."""
    name = re.compile(r"(?<![\w/.-])pylink(?:\.[A-Za-z_]\w*)+(?![\w/-])")
    missing = set()
    for path in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for found in set(name.findall(node.value)) - NO_MODULES:
                    try:
                        pkgutil.resolve_name(found)
                    except (ImportError, AttributeError):
                        missing.add(f"{path.relative_to(ROOT)}:{node.lineno}: {found}")
    assert missing == set()


def test_functions_that_no_other_file_names_are_private() -> None:
    """`main` is what programs start; generated modules have the names of their source."""
    suffixes = {".py", ".pyx", ".pyi", ".c", ".h", ".j2", ".md", ".section"}
    files = [
        str(path.relative_to(ROOT))
        for folder in ("src", "tests", "scripts", "benchmarks", "docs")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and path.name != Path(__file__).name
    ]
    homes: dict[str, set[str]] = {}
    for file in [*files, "setup.py"]:
        for word in set(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8"))):
            homes.setdefault(word, set()).add(file)
    lonely = [
        f"{file}: {node.name}"
        for file in files
        if file.startswith("src/pylink/") and file.endswith(".py") and "/stock/" not in file
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and homes[node.name] == {file}
    ]
    assert lonely == PUBLIC
