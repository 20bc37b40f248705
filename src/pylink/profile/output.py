"""Writes the files of a profile, each atomically, once the output of the link is written."""

from __future__ import annotations

from pylink.diagnostics.errors import reason_of
from pylink.files.atomic import write_output
from pylink.packages.extras import need
from pylink.profile.collector import Recorder, profile_of, profile_outline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pylink.diagnostics import Sink
    from pylink.options.model import Options
    from pylink.profile.model import Profile
    from pylink.profile.results import PhaseResults


class Collector(Recorder):
    """Creates the profile of a link, and writes the files that the options name."""

    __slots__ = ("_options", "_shows_progress", "_sink", "needs_image", "profile")

    def __init__(self, options: Options, sink: Sink, *, shows_progress: bool = False) -> None:
        super().__init__()
        self._shows_progress = shows_progress
        self._options = options
        self.needs_image = bool(options.profile)  # the report has sums over its sections
        self._sink = sink
        self.profile: Profile | None = None

    def close(self, *, failed: bool) -> None:
        super().close(failed=failed)
        if failed:
            return
        results = self.results()
        self.profile = profile_outline(self) if results is None else profile_of(self, results)
        options = self._options
        progress = self._shows_progress
        _write_outputs(self.profile, results, options, self._sink, shows_progress=progress)


def check_packages(options: Options, sink: Sink) -> None:
    """Report an error before the link if packages for the report are not installed."""
    try:
        need("google.protobuf.message_factory")
    except ImportError as error:
        sink.fatal("profile-failed", file=options.profile or "", reason=str(error))


def check_chosen_sections(options: Options, sink: Sink) -> None:
    """Report an error for unknown sections, sets, rules and metrics, or any without --profile."""
    if not options.profile:
        options_text = "--section, --set, --rule or --metrics"
        sink.fatal("conflicting-options", option=options_text, other="no --profile")
    try:
        if options.metrics:
            from pylink.report.view.selection import check_names

            check_names(options.metrics)
        from pylink.report.preparation import check_names as check_section_names

        check_section_names(
            directories=options.section_folder,
            recursive=options.section_folder_recursive,
            sections=options.section,
            sets=options.set,
            rules=options.rule,
        )
    except (ImportError, ValueError) as error:
        sink.fatal("profile-failed", file=options.profile, reason=str(error))


def _write_outputs(
    profile: Profile,
    results: PhaseResults | None,
    options: Options,
    sink: Sink,
    *,
    shows_progress: bool = False,
) -> None:
    """Write the files that the options name; report those that cannot be written.

    `results` is None if LTO produced the output: the whole program, or PTX.
    """

    def trace() -> bytes:
        """Return the contents of the file of --time-trace."""
        from pylink.profile.timetrace import encode, trace_events

        return encode(trace_events(profile), profile.created)

    def aprof() -> bytes:
        """Return the contents of the file of --profile-aprof."""
        from pylink.aprof.writer import encode
        from pylink.profile.replay import replay
        from pylink.profile.routines import aprof_report

        parts = replay(results, shows_progress=shows_progress) if results else ()
        return encode(aprof_report(profile, parts))

    def report() -> bytes:
        """Return the contents of the file of --profile; report problems with its sections."""
        from pylink.profile.report import link_report
        from pylink.report import report_bytes
        from pylink.report.preparation import prepare

        nsight_report = link_report(profile, results)
        has_chosen_sections = bool(options.section or options.set)
        runs_rules = not options.metrics or has_chosen_sections or bool(options.rule)
        problems = prepare(
            nsight_report,
            directories=options.section_folder,
            recursive=options.section_folder_recursive,
            sections=options.section,
            sets=options.set,
            rules=options.rule,
            with_rules=options.apply_rules != "no" and runs_rules,
        )
        if options.metrics:
            from pylink.report.view.selection import restrict_metrics

            nsight_report = restrict_metrics(
                nsight_report, options.metrics, keeps_sections=has_chosen_sections
            )
        for problem in problems:
            sink.report("profile-problem", reason=problem)
        return report_bytes(nsight_report)

    _write(options.profile, report, sink)
    _write(options.time_trace, trace, sink)
    _write(options.profile_aprof, aprof, sink)


def _write(path: str | None, encode_contents: Callable[[], bytes], sink: Sink) -> None:
    """Write a file of these contents, or report why not; without a path do nothing."""
    if not path:
        return
    try:
        contents = encode_contents()
    except (ImportError, OSError, ValueError) as error:
        sink.fatal("profile-failed", file=path, reason=reason_of(error))
    write_output(path, contents, sink)
