"""A program while features are added: its modules, and functions that later features may use."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Module:
    """One translation unit: its file name (.cu or .ptx), text and compiler flags."""

    name: str
    source: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Function:
    """A __device__ function that other code may call; `signature` has {} in place of its name."""

    name: str
    module: int
    signature: str
    call: str  # an int expression with {x} for the int argument


@dataclass
class ModuleDraft:
    """A module while features add to it; the parts are in the order of addition."""

    index: int
    includes: list[str] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def include(self, header: str) -> None:
        """Include a header once."""
        line = f"#include <{header}>"
        if line not in self.includes:
            self.includes.append(line)

    def declare(self, line: str) -> None:
        """Add a declaration once."""
        if line not in self.declarations:
            self.declarations.append(line)

    def render(self) -> str:
        """Return the source of the module."""
        return "\n".join([*self.includes, *self.declarations, *self.body, ""])


@dataclass
class Draft:
    """A program while features add to it."""

    rng: random.Random
    modules: list[ModuleDraft]
    functions: list[Function] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    ptx: list[Module] = field(default_factory=list)
    device_runtime: bool = False
    count: int = 0

    def name(self, prefix: str) -> str:
        """Return a new name, unique in the program."""
        self.count += 1
        return f"{prefix}{self.count}"

    def module(self) -> ModuleDraft:
        """Return a random module."""
        return self.rng.choice(self.modules)

    def callable(self, module: ModuleDraft) -> Function | None:
        """Return a random device function, declared in `module` if another module defines it.

        None without one.
        """
        if not self.functions:
            return None
        function = self.rng.choice(self.functions)
        if function.module != module.index:
            module.declare(f"extern {function.signature.format(function.name)};")
        return function

    def kernel(self, module: ModuleDraft, parameters: str, text: str, attributes: str = "") -> str:
        """Add a kernel with the given parameter list and body."""
        name = self.name("k")
        module.body.append(f"__global__ {attributes}void {name}({parameters}) {{\n{text}\n}}")
        self.kernels.append(name)
        return name


Feature = Callable[[Draft], None]
