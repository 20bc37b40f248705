"""Adds the site-packages directories that the bootstrap omits, for links that need a package."""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class Sites:
    """The last import finder of a process without `site`: runs `site`, then searches again."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Call `add_sites`, which removes this finder, and search the import path again."""
        add_sites()
        return PathFinder.find_spec(name, path)  # type: ignore[arg-type]


def find_package(name: str) -> list[str]:
    """Return the directories of a package, without importing it; empty if it is not installed."""
    spec = PathFinder.find_spec(name)
    if spec is None and Sites in sys.meta_path:
        # An editable install lies elsewhere, but the packages that it needs are in the environment.
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        prefix = os.path.dirname(os.path.dirname(sys.executable))
        spec = PathFinder.find_spec(name, [os.path.join(prefix, "lib", version, "site-packages")])
        if spec is None:
            add_sites()
            spec = PathFinder.find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def add_sites() -> None:
    """Set `sys.path` and `sys.prefix` as in a process that was started with `site`."""
    if Sites in sys.meta_path:
        sys.meta_path.remove(Sites)
        import site  # only here: this takes a fifth of the interpreter's start

        site.main()
        # -I omits the user's site directory, where pylink itself may be installed.
        may_use_user_site = sys.prefix == sys.base_prefix and os.geteuid() == os.getuid()
        if may_use_user_site and not os.environ.get("PYTHONNOUSERSITE"):
            directory = site.getusersitepackages()
            if os.path.isdir(directory):
                site.addsitedir(directory)
