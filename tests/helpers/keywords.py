"""Words of a command line as keyword arguments of `pylink.link`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

KEYWORDS = {
    "-r": "relocatable_link",
    "-g": "debug",
    "-v": "verbose",
    "-suppress-debug-info": "suppress_debug_info",
    "-preserve-relocs": "preserve_relocs",
    "--kernels-used": "kernels_used",
    "--variables-used": "variables_used",
    "-dump-callgraph": "dump_callgraph",
    "-dump-callgraph-no-demangle": "dump_callgraph_no_demangle",
    "-extrawarn": "extra_warnings",
    "-Werror": "warning_as_error",
    "-w": "disable_warnings",
    "-disable-infos": "disable_infos",
    "-report-arch": "report_arch",
    "--library-path": "library_path",
    "--library": "library",
    "-use-host-info": "use_host_info",
    "-ignore-host-info": "ignore_host_info",
    "--merc-dedup": "merc_dedup",
}
LISTS = {"library_path", "library", "kernels_used", "variables_used"}


def keywords(options: Sequence[str]) -> dict[str, Any]:
    """Return the keyword arguments that mean the same as options of the command line."""
    result: dict[str, Any] = {}
    for option in options:
        name, _, value = option.partition("=")
        key = KEYWORDS[name]
        if key in LISTS:
            result.setdefault(key, []).extend(value.split(","))
        else:
            result[key] = value or True
    return result
