"""-l and -L: which file a library name stands for."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.options import Options


def refuse_libraries(options: Options, sink: Sink) -> None:
    """End the link at the first library that exists: archives cannot be linked yet.

    `-lNAME` is `libNAME.a` in one of the directories of -L, and nothing else; one that is in none
    of them is no mistake, as in nvlink.
    """
    for name in options.library:
        for directory in options.library_path:
            file = os.path.join(directory, f"lib{name}.a")
            if os.path.exists(file):
                sink.fatal("library-not-built", file=file, library=name)
