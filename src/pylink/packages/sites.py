"""The folders of modules that a quick start omits, for the few links that need one of them."""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


class Sites:
    """The last finder of a process without `site`: has `site` do its work, and looks again."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        add_sites()
        return PathFinder.find_spec(name, path)  # type: ignore[arg-type]


def find_package(name: str) -> list[str]:
    """The folders of a package, which is not imported; none when there is no such package."""
    spec = PathFinder.find_spec(name)
    if spec is None and Sites in sys.meta_path:
        # An editable install has its packages where an environment has them, but is elsewhere.
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        prefix = os.path.dirname(os.path.dirname(sys.executable))
        spec = PathFinder.find_spec(name, [os.path.join(prefix, "lib", version, "site-packages")])
        if spec is None:
            add_sites()
            spec = PathFinder.find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def add_sites() -> None:
    """Make `sys.path` and `sys.prefix` what they are in a process that was started as usual."""
    if Sites in sys.meta_path:
        sys.meta_path.remove(Sites)
        import site  # takes a fifth of the interpreter's start

        site.main()
        # -I omits the user's folder, in which pylink itself may be.
        own = sys.prefix == sys.base_prefix and os.geteuid() == os.getuid()
        if own and not os.environ.get("PYTHONNOUSERSITE"):
            folder = site.getusersitepackages()
            if os.path.isdir(folder):
                site.addsitedir(folder)
