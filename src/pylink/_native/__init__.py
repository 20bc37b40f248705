"""Native kernels: loops over bytes, sections, symbols and relocations.

Sources are in ``src/_native``; the ``.pyi`` beside this file is each kernel's contract. All are in
one shared object, which is opened once: the finder below directs the import of each module to it.
"""

from __future__ import annotations

import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader
from _imp import extension_suffixes

OBJECT_PATH = f"{__path__[0]}/kernels{extension_suffixes()[0]}"
PREFIX = f"{__name__}."


class Kernels:
    """Finds `pylink._native.NAME` in the shared object, whose function PyInit_NAME makes it."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith(PREFIX):
            return None
        return ModuleSpec(name, ExtensionFileLoader(name, OBJECT_PATH), origin=OBJECT_PATH)


sys.meta_path.insert(0, Kernels)
