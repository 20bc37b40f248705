"""Several links in one call, which reads their common inputs once."""

from __future__ import annotations

import os
from io import StringIO
from threading import Lock

from pylink._native.cores import count_cores
from pylink.api.following import ONE_FRAME, Following
from pylink.api.inputs import as_input
from pylink.api.linker import Linker
from pylink.api.values import check_keywords, check_list
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.inputs.archivehost import thin_members
from pylink.inputs.libraries import find_libraries
from pylink.options.model import Options
from pylink.options.plan import OutputPlan, output_identity, plan_outputs
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
    from pylink.options.plan import OutputIdentity


class LinkJob:
    """One link for `link_many`; the arguments are those of `link`.

    Raises TypeError for an argument of a wrong type and for an unknown option.
    """

    __slots__ = ("_keywords", "_log", "_options", "arch", "inputs", "output")

    inputs: tuple[InputLike, ...]
    """The inputs, in order."""
    arch: str
    """The architecture to link for."""
    output: str | None
    """The output file; None to write none."""

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
        check_list(inputs)
        if not isinstance(arch, str):
            raise TypeError(f"arch is a name such as 'sm_90a', not {arch!r}")
        check_keywords(keywords)
        self.inputs = tuple(inputs)
        self.arch = arch
        self.output = None if output is None else os.fspath(output)
        self._options = options
        self._log = log
        self._keywords = keywords

    def __repr__(self) -> str:
        return f"<LinkJob {self.arch}: {len(self.inputs)} inputs>"


class _JobRun:
    """A job with its linker and its log, and later its outcome.

    `linker` is None after the link, and if an option or input was refused. `log` collects what is
    written to the job's log at the end; None without a log.
    """

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
                linker._add(source, must_exist=False)
            self.linker = linker
        except LinkError as error:
            self._fail(error)

    def link(self, shared: SharedInputs) -> None:
        """Do the link, and release its inputs."""
        if self.linker is None:
            return
        with self.linker as linker:
            try:
                self.outcome = linker._complete(shared)
            except LinkError as error:
                self._fail(error)
        self.linker = None

    def _fail(self, error: LinkError) -> None:
        """Keep the error as the job's outcome."""
        # The frames of a traceback would keep all memory of the link.
        self.outcome = error.with_traceback(None)

    def inputs(self, contents: dict[str, bytes]) -> list[LinkInput]:
        """Return the inputs that other links can share, with libraries of the link's options.

        Files whose name in diagnostics is not their path are read, into `contents` by path. The
        list is empty if an option, an input or a library was refused.
        """
        if self.linker is None:
            return []
        silent_sink = Sink()
        try:
            self.linker._read_renamed_files(contents)
            inputs = self.linker._list_shareable_inputs()
            values = self.linker._values
            if values.get("library"):
                options = Options(values, [])
                is_whole = [options.whole_archive] * len(options.library)
                inputs += find_libraries(
                    options, is_whole, OutputPlan({}, (), silent_sink), silent_sink
                )
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
    """Do several links in parallel; the list has the result or the LinkError of each job.

    Common inputs of jobs, by path or as the same object, are read once and decompressed once. Each
    result is that of `link` with the arguments of the job; a failed link does not stop the others.
    `threads` links run at once (default: PYLINK_THREADS, or one for each core); results do not
    depend on it. All files are read before the first link, except for members of thin archives.
    Memory holds all inputs, a decompressed copy of compressed ones, and the parts that running
    links use.

    Messages for a `log` are written at the end, in the order of the jobs. `progress` is called with
    "link", the number of finished links and the number of all; True shows a bar. `cancel` is
    checked between the phases of each link; outputs of finished links stay.

    Raises LinkCancelled if `cancel` was set, and TypeError for an object that is not a LinkJob or
    not an input. ValueError is raised for a negative number of threads, for two jobs that write the
    same file, and for a job that writes an input of another.
    """
    job_list = list(jobs)
    following = Following(progress, cancel)
    for number, job in enumerate(job_list):
        if not isinstance(job, LinkJob):
            raise TypeError(f"job {number} is not a LinkJob: {job!r}")
    if threads is not None and threads < 0:
        raise ValueError(f"threads is the number of links at once, not {threads}")
    shared_inputs: dict[int, Input] = {}
    prepared = [
        _JobRun(
            job,
            [
                _to_input(source, input_number, number, shared_inputs)
                for input_number, source in enumerate(job.inputs)
            ],
            cancel,
        )
        for number, job in enumerate(job_list)
    ]
    contents: dict[str, bytes] = {}
    inputs = [job.inputs(contents) for job in prepared]
    _check_outputs(prepared, inputs)
    shared = SharedInputs()
    silent_sink = Sink()
    shared.add(
        [source for sources in inputs for source in sources],
        OutputPlan({}, (), silent_sink),
        silent_sink,
    )
    del inputs, contents
    lock = Lock()
    finished_count = 0

    def work(job: _JobRun) -> None:
        nonlocal finished_count
        job.link(shared)
        with lock:
            finished_count += 1
            following.report_progress("link", finished_count, len(prepared))

    try:
        with ONE_FRAME:
            run_side_by_side(work, prepared, threads or count_cores())
    finally:
        following.close()
        for prepared_job in prepared:
            if prepared_job.log is not None and prepared_job.job._log is not None:
                prepared_job.job._log.write(prepared_job.log.getvalue())
    return [prepared_job.outcome for prepared_job in prepared if prepared_job.outcome is not None]


def _to_input(
    source: InputLike, number: int, job: int, converted_inputs: dict[int, Input]
) -> Input | str:
    """Convert input `number` of job `job` (both for errors); a path that is a `str` stays as it is.

    `converted_inputs`, by `id` of the object, gives the same Input for the same object, so that
    contents are shared.
    """
    if type(source) is str:
        return source
    converted = converted_inputs.get(id(source))
    if converted is None:
        try:
            converted = converted_inputs[id(source)] = as_input(source, number)
        except TypeError as error:
            raise TypeError(f"job {job}, {error}") from None
    return converted


def _check_outputs(jobs: Sequence[_JobRun], inputs: Sequence[Sequence[LinkInput]]) -> None:
    """Refuse jobs that would write a file that another job writes or reads.

    Raises ValueError. `inputs` has, for each job, the result of `_JobRun.inputs`, which also has
    the libraries.
    """
    # By output file: number of the job that writes it, and the path that the job has for it.
    writers: dict[OutputIdentity, tuple[int, str]] = {}
    for number, job in enumerate(jobs):
        if job.linker is None:
            continue
        for output in plan_outputs(job.linker._values, Sink()):
            file = output_identity(output.path)
            if file is None:
                continue
            other, _ = writers.setdefault(file, (number, output.path))
            if other != number:
                raise ValueError(f"jobs {other} and {number} both write {output.path!r}")
    if not writers:
        return
    # By path of an input: the files that a link reads for it. Many jobs share inputs.
    files: dict[str, list[OutputIdentity]] = {}
    for number, (job, sources) in enumerate(zip(jobs, inputs, strict=True)):
        if job.linker is None:
            continue
        libraries = (source.name for source in sources if source.data is None)
        for input_path in (*job.linker._list_files(), *libraries):
            if input_path not in files:
                files[input_path] = _find_files(input_path)
            for file in files[input_path]:
                writer, path = writers.get(file, (number, ""))
                if writer != number:
                    raise ValueError(f"job {writer} writes {path!r}, which job {number} reads")


def _find_files(path: str) -> list[OutputIdentity]:
    """Return the identities of an input and, if it is a thin archive, of the files it names.

    An input that does not exist yet has an identity, too: a job must not read what another writes.
    """
    file = output_identity(path)
    if file is None:  # such as a pipe, which can be read only once
        return []
    members = map(output_identity, thin_members(path))
    return [file, *(member for member in members if member is not None)]
