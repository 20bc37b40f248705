"""Several links in one call: what they read in common is read once."""

from __future__ import annotations

import os
from io import StringIO
from threading import Lock

from pylink._native.cores import count_cores
from pylink.api.following import ONE_FRAME, Following
from pylink.api.inputs import as_input
from pylink.api.linker import Linker
from pylink.api.values import checked
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.inputs.libraries import find_libraries
from pylink.options.model import Options
from pylink.options.plan import Plan, identity, place_of, plan_outputs
from pylink.phases.sharing import SharedInputs
from pylink.phases.sidebyside import run_side_by_side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TextIO

    from typing_extensions import Unpack

    from pylink.api.following import Cancel, ProgressCall
    from pylink.api.inputs import Input, InputLike, Path
    from pylink.api.keywords import LinkKeywords
    from pylink.api.options import LinkOptions
    from pylink.api.result import LinkResult
    from pylink.options.model import Input as LinkInput
    from pylink.options.plan import Place


class LinkJob:
    """One link for `link_many`; the arguments are those of `link`.

    Raises TypeError for an argument of a wrong type and for an unknown option.
    """

    __slots__ = ("_keywords", "_log", "_options", "arch", "inputs", "output")

    inputs: tuple[InputLike, ...]
    """What is linked, in order."""
    arch: str
    """The architecture to link for."""
    output: str | None
    """The file that is written, None for none."""

    def __init__(
        self,
        inputs: Iterable[InputLike],
        options: LinkOptions | None = None,
        *,
        arch: str,
        output: Path | None = None,
        log: TextIO | None = None,
        **keywords: Unpack[LinkKeywords],
    ) -> None:
        if isinstance(inputs, (str, bytes, os.PathLike)):
            raise TypeError("inputs is a list, also of one input")
        if not isinstance(arch, str):
            raise TypeError(f"arch is a name such as 'sm_90a', not {arch!r}")
        checked(keywords)
        self.inputs = tuple(inputs)
        self.arch = arch
        self.output = None if output is None else os.fspath(output)
        self._options = options
        self._log = log
        self._keywords = keywords

    def __repr__(self) -> str:
        return f"<LinkJob {self.arch}: {len(self.inputs)} inputs>"


class _Prepared:
    """A job with its inputs added, and the log of it; or the error that it failed with already."""

    __slots__ = ("job", "linker", "log", "outcome")

    def __init__(self, job: LinkJob, inputs: Sequence[Input | str], cancel: Cancel | None) -> None:
        self.job = job
        self.log = None if job._log is None else StringIO()
        self.linker: Linker | None = None
        self.outcome: LinkResult | LinkError | None = None
        try:
            linker = Linker(
                job._options,
                arch=job.arch,
                output=job.output,
                log=self.log,
                cancel=cancel,
                **job._keywords,
            )
            for source in inputs:
                linker._take(source, looks=False)
            self.linker = linker
        except LinkError as error:
            self._fail(error)

    def link(self, shared: SharedInputs) -> None:
        """Do the link; the inputs are let go."""
        if self.linker is None:
            return
        with self.linker as linker:
            try:
                self.outcome = linker._complete(shared)
            except LinkError as error:
                self._fail(error)
        self.linker = None

    def _fail(self, error: LinkError) -> None:
        # The frames of a traceback would keep all that the link had.
        self.outcome = error.with_traceback(None)

    def inputs(self) -> list[LinkInput]:
        """What the link will read, with the libraries of its options; nothing if that fails."""
        if self.linker is None:
            return []
        unheard = Sink()
        try:
            inputs = self.linker._shareable()
            values = self.linker._values
            if values.get("library"):
                options = Options(values, [])
                whole = [options.whole_archive] * len(options.library)
                inputs += find_libraries(options, whole, Plan({}, (), unheard), unheard)
        except LinkError:
            return []
        return inputs


def link_many(
    jobs: Iterable[LinkJob],
    threads: int | None = None,
    *,
    progress: ProgressCall | bool | None = None,
    cancel: Cancel | None = None,
) -> list[LinkResult | LinkError]:
    """Do several links side by side: for each job, in order, its result or the LinkError.

    Inputs that several jobs have in common, by path or as the same object, are read once and
    decompressed once. Each result is that of `link` with the arguments of the job, and one that
    fails does not stop the others. `threads` links run at once, by default one for each core, or as
    many as PYLINK_THREADS says; results do not depend on it. All files are read before the first
    link. In memory are the inputs, once; once more what is compressed in them; and for each link
    that runs what it takes of them.

    What jobs write to a `log` comes in the order of the jobs, at the end. `progress` is called with
    "link", how many links ended and how many there are, or is True for a bar. `cancel` is asked
    between the phases of each link whether to give all up; what ended before is written.

    Raises LinkCancelled when it was given up, and TypeError for what is not a LinkJob or not an
    input. ValueError is raised for a negative number of threads, two jobs that write the same file,
    and one that writes an input of another.
    """
    listed = list(jobs)
    following = Following(progress, cancel)
    for number, job in enumerate(listed):
        if not isinstance(job, LinkJob):
            raise TypeError(f"job {number} is not a LinkJob: {job!r}")
    if threads is not None and threads < 0:
        raise ValueError(f"threads is the number of links at once, not {threads}")
    known_inputs: dict[int, Input] = {}
    prepared = [
        _Prepared(
            job,
            [_take(source, place, number, known_inputs) for place, source in enumerate(job.inputs)],
            cancel,
        )
        for number, job in enumerate(listed)
    ]
    inputs = [job.inputs() for job in prepared]
    _check_outputs(prepared, inputs)
    shared = SharedInputs()
    unheard = Sink()
    shared.add([source for sources in inputs for source in sources], Plan({}, (), unheard), unheard)
    del inputs
    lock = Lock()
    ended = 0

    def work(job: _Prepared) -> None:
        nonlocal ended
        job.link(shared)
        with lock:
            ended += 1
            following.reach("link", ended, len(prepared))

    try:
        with ONE_FRAME:
            run_side_by_side(work, prepared, threads or count_cores())
    finally:
        following.close()
        for prepared_job in prepared:
            if prepared_job.log is not None and prepared_job.job._log is not None:
                prepared_job.job._log.write(prepared_job.log.getvalue())
    return [prepared_job.outcome for prepared_job in prepared if prepared_job.outcome is not None]


def _take(source: InputLike, place: int, job: int, sources: dict[int, Input]) -> Input | str:
    """An input, the same for the same object: contents are then shared."""
    if type(source) is str:
        return source
    loaded = sources.get(id(source))
    if loaded is None:
        try:
            loaded = sources[id(source)] = as_input(source, place)
        except TypeError as error:
            raise TypeError(f"job {job}, {error}") from None
    return loaded


def _check_outputs(jobs: Sequence[_Prepared], inputs: Sequence[Sequence[LinkInput]]) -> None:
    """Refuse jobs that would write what another one writes or reads."""
    places: dict[Place, tuple[int, str]] = {}
    for number, job in enumerate(jobs):
        if job.linker is None:
            continue
        for output in plan_outputs(job.linker._values, Sink()):
            place = place_of(output.path)
            if place is None:
                continue
            other, _ = places.setdefault(place, (number, output.path))
            if other != number:
                raise ValueError(f"jobs {other} and {number} both write {output.path!r}")
    if not places:
        return
    seen: dict[str, Place | None] = {}
    for number, sources in enumerate(inputs):
        for source in sources:
            if source.data is None and source.name not in seen:
                seen[source.name] = identity(source.name)
            place = seen.get(source.name) if source.data is None else None
            writer, path = places.get(place, (number, "")) if place is not None else (number, "")
            if writer != number:
                raise ValueError(f"job {writer} writes {path!r}, which job {number} reads")
