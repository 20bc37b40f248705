"""Reads native code with Cython's compiler, up to where expressions have their types.

A type such as `SectionNumber` is still in these trees. In the C that Cython writes from them it is
an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from Cython.Compiler import Errors, Main, Options, Pipeline
from Cython.Compiler.ParseTreeTransforms import AnalyseExpressionsTransform

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src" / "_native"
INCLUDED = (ROOT / "src", ROOT / "build" / "facts", NATIVE)
PXD = ROOT / "src" / "pylink" / "_native"  # what modules declare for others
# Directives of setup.py that change which programs are valid.
DIRECTIVES = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}
# Modules of Cython's own, which each context has.
BUILT_IN = ("__builtin__", "builtins", "cython")


def native_sources() -> list[Path]:
    """Return all modules of native code; those that others cimport come last."""
    return sorted(
        NATIVE.glob("*/*.pyx"),
        key=lambda path: (PXD.joinpath(path.with_suffix(".pxd").name).exists(), path),
    )


class RecordingContext(Main.Context):
    """Cython's context of one module; keeps the typed trees of headers.

    Headers that another context has read are not read again.
    """

    def __init__(
        self, options: Any, modules: dict[str, Any], record: Callable[[Any], None]
    ) -> None:
        super().__init__(
            options.include_path, options.compiler_directives, False, 3, options=options
        )
        self.modules.update(modules)
        self.record = record

    def process_pxd(self, source_desc: Any, scope: Any, module_name: str) -> Any:
        if source_desc.in_utility_code or source_desc._file_type == "pyx":
            return super().process_pxd(source_desc, scope, module_name)
        pipeline = Pipeline.create_pxd_pipeline(self, scope, module_name)
        stages = [*until_typed(pipeline, self.record), pipeline[-1]]
        return Pipeline.run_pipeline(stages, source_desc)


def until_typed(stages: list[Any], record: Callable[[Any], None]) -> list[Any]:
    """Return the stages up to the one that gives expressions their types, and `record` after it."""

    def keep(tree: Any) -> Any:
        record(tree)
        return tree

    (last,) = (
        number
        for number, stage in enumerate(stages)
        if isinstance(stage, AnalyseExpressionsTransform)
    )
    return [*stages[: last + 1], keep]


def typed_trees(sources: Iterable[Path], included: Iterable[Path] = INCLUDED) -> list[Any]:
    """Return the typed tree of each source, and of each header that they read."""
    modules: dict[str, Any] = {}
    trees: list[Any] = []
    for source in sources:
        options = Options.CompilationOptions(
            Options.default_options,
            include_path=list(map(str, included)),
            compiler_directives={**Options.get_directive_defaults(), **DIRECTIVES},
            language_level=3,
        )
        context = RecordingContext(options, modules, trees.append)
        name = f"pylink._native.{source.stem}"
        compiled = Main.setup_source_object(str(source), ".pyx", name, options, context)
        result = Main.create_default_resultobj(compiled, options)
        context.setup_errors(options, result)
        pipeline = Pipeline.create_pyx_pipeline(context, options, result)
        error, _ = Pipeline.run_pipeline(until_typed(pipeline, trees.append), compiled)
        if error or Errors.get_errors_count():
            raise RuntimeError(f"{source}: Cython cannot read it")
        modules.update(
            (name, scope) for name, scope in context.modules.items() if name not in BUILT_IN
        )
    return trees
