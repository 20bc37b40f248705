"""The process that links: a job a line on standard input, an answer a line on standard output.

An answer says how the link ended; what was linked is written to `out` in the working directory. A
crash ends the process, and what the sanitizers say of it is on standard error.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import pylink
from fuzz.jobs import Job

LINKED, REFUSED, BROKEN = "linked", "refused", "broken"


def link(job: Job) -> dict[str, Any]:
    """Link; the state, and what was said or what is wrong."""
    log = io.StringIO()
    try:
        result = pylink.link(job.inputs(), arch=f"sm_{job.arch}", log=log, **job.keywords())
    except pylink.LinkError as error:
        if error.diagnostics:
            return {"state": REFUSED, "text": log.getvalue()}
        return {"state": BROKEN, "text": "refused without a diagnostic"}
    except Exception as error:  # whatever it is, a finding
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.name}"
        return {"state": BROKEN, "text": f"{type(error).__name__}: {error} ({place})"}
    Path("out").write_bytes(result.image)
    return {"state": LINKED, "text": log.getvalue()}


def main() -> None:
    answers = sys.stdout
    for line in sys.stdin:
        answer = link(Job.from_json(json.loads(line)))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
