"""Adds the metrics of a link to the actions of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from pylink.profile.composition import output_parts
from pylink.profile.estimates import (
    FULL,
    copy_floor_ns,
    debug_ns,
    debug_options,
    disk_wait_ns,
    folding_ns,
    reading_cost,
)
from pylink.profile.phase import Cost
from pylink.report.model import Action, Instance, Metric, ValueKind
from pylink.report.view.bytetree import PATH_SEPARATOR
from pylink.size.levels import largest_functions
from pylink.size.levels import rows as size_rows
from pylink.size.walk import measure_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.mercury.folding import FoldResult
    from pylink.mercury.stages import Verdict
    from pylink.mercury.stats import Stats
    from pylink.profile.model import Profile
    from pylink.profile.phase import Phase
    from pylink.profile.results import PhaseResults

# Metrics that sum an attribute of input files, with an instance for each file where it is not 0.
FILE_METRICS = (
    ("file__bytes_input.sum", "size"),
    ("file__read_time_duration.sum", "read_ns"),
    ("file__read_cpu_time_duration.sum", "read_cpu_ns"),
    ("file__parse_time_duration.sum", "parse_ns"),
    ("file__debug_bytes.sum", "debug_bytes"),
    ("file__kept_bytes.sum", "kept_bytes"),
    ("file__folded_bytes.sum", "folded_bytes"),
    ("sect__input.sum", "sections"),
    ("sym__defined.sum", "defined"),
    ("sym__undefined.sum", "undefined"),
    ("reloc__input.sum", "relocations"),
)
# Metrics that sum an attribute of input files, without instances.
FILE_TOTALS = (
    ("sect__kept.sum", "kept_sections"),
    ("sym__input.sum", "symbols"),
    ("sym__weak.sum", "weak"),
    ("sym__functions.sum", "functions"),
)
# Metrics that sum an attribute of section families, with an instance for each where it is not 0.
SECTION_METRICS = (
    ("sect__merged.sum", "kept_sections"),
    ("sect__input_bytes.sum", "input_bytes"),
    ("sect__discarded_bytes.sum", "discarded_bytes"),
    ("sect__folded_bytes.sum", "folded_bytes"),
    ("sect__output.sum", "output_sections"),
    ("sect__output_bytes.sum", "output_bytes"),
)
# Names of the stages of a comparison: primary data, section headers, targets of relocations.
STAGES = ("primary", "headers", "targets")

# Limit of functions of the output that are listed one by one.
MAX_FUNCTIONS = 24


def _add_instances(action: Action, name: str, rows: Iterable[tuple[str, int]]) -> Metric:
    """Add a metric with an instance for each row that is not 0, and their sum as its value."""
    integer, string = ValueKind.UINT64, ValueKind.STRING
    parts = [Instance(value, key, integer, string) for key, value in rows if value]
    return action.add(Metric(name, sum(part.value for part in parts), integer, parts))  # type: ignore[misc] # all are int


def add_cost(action: Action, phase: Phase, profile: Profile) -> None:
    """Add the cost of a phase, in total and by step."""
    _add_cost(action, phase.cost)
    add_share(action, phase.cost, profile)
    _add_instances(
        action, "link__step_time_duration.sum", ((step.name, step.wall_ns) for step in phase.steps)
    )
    for name, value in (
        ("link__bytes_copied.sum", phase.bytes_copied),
        ("link__bytes_compared.sum", phase.bytes_compared),
        ("link__bytes_hashed.sum", phase.bytes_hashed),
        ("link__sections.sum", phase.sections),
        ("link__symbols.sum", phase.symbols),
        ("link__relocations.sum", phase.relocations),
    ):
        action.set(name, value)


def _add_cost(action: Action, cost: Cost) -> None:
    """Add the metrics of a cost; the processor's counters only if they are known."""
    action.set("link__time_duration.sum", cost.wall_ns)
    action.set("link__cpu_time_duration.sum", cost.cpu_ns)
    action.set("link__memory_peak_bytes.max", cost.peak_bytes)
    action.set("link__page_faults_minor.sum", cost.minor_faults)
    action.set("link__page_faults_major.sum", cost.major_faults)
    if cost.cycles is not None:
        action.set("link__cycles_elapsed.sum", cost.cycles)
    if cost.instructions is not None:
        action.set("link__inst_executed.sum", cost.instructions)


def add_files(action: Action, profile: Profile, *, by_file: bool = True) -> None:
    """Add contents of the inputs and costs of reading them; `by_file` adds instances by input."""
    files = profile.files
    read = profile["read"]
    rows = [(name, attrgetter(attribute)) for name, attribute in FILE_METRICS]
    if read.bytes_read == profile.input_bytes:  # each input is a plain cubin
        rows.append(("file__bytes_read.sum", attrgetter("size")))
    else:
        action.set("file__bytes_read.sum", read.bytes_read)
    names = [file.name for file in files]
    for name, value in rows:
        if by_file:
            _add_instances(action, name, zip(names, map(value, files), strict=True))
        else:
            action.set(name, sum(map(value, files)))
    for name, attribute in FILE_TOTALS:
        action.set(name, sum(map(attrgetter(attribute), files)))
    action.set("file__opened.sum", profile.opened)
    action.set("file__helper_time_duration.sum", sum(file.read_ns for file in files if file.lane))
    if read.bytes_read:
        # Disk reads beyond the bytes of the inputs are for pylink's own modules.
        disk_bytes = min(reading_cost(profile).disk_bytes, read.bytes_read)
        action.set("file__disk_bytes.sum", disk_bytes)
        action.set("file__disk_wait_duration.sum", disk_wait_ns(profile) if disk_bytes else 0)
        action.set("file__cache_hit.pct", 100 * (1 - disk_bytes / read.bytes_read))


def add_sections(action: Action, profile: Profile) -> None:
    """Add counts and bytes of the sections of each family."""
    for name, attribute in SECTION_METRICS:
        value = attrgetter(attribute)
        _add_instances(action, name, ((family.name, value(family)) for family in profile.families))


def add_relocations(action: Action, profile: Profile) -> None:
    """Add relocations by type and by section family, and the copied bytes."""
    types, families = profile.relocations, profile.families
    _add_instances(action, "reloc__applied.sum", ((row.name, row.applied) for row in types))
    _add_instances(action, "reloc__left_dynamic.sum", ((row.name, row.kept) for row in types))
    for name, attribute in (
        ("reloc__applied_by_section.sum", "relocations_applied"),
        ("reloc__left_by_section.sum", "relocations_kept"),
        ("sect__copied_bytes.sum", "copied_bytes"),
    ):
        value = attrgetter(attribute)
        _add_instances(action, name, ((family.name, value(family)) for family in families))


def add_dedup(action: Action, folding: FoldResult, saved: int | None) -> None:
    """Add the work and the results of deduplication.

    The output is `saved` bytes shorter; None is unknown.
    """
    stats, comparisons = folding.stats, folding.compared
    _add_instances(
        action,
        "dedup__bytes_compared.sum",
        ((pair.candidate.name, pair.stats.bytes_compared) for pair in comparisons),
    )
    _add_instances(
        action,
        "dedup__payload_bytes.sum",
        ((pair.candidate.name, pair.candidate.size) for pair in comparisons if pair.code == 0),
    )
    if saved is not None:
        action.set("dedup__bytes_saved.sum", saved)
    _add_stats(action, stats)
    action.set("dedup__objects.sum", len(folding.reference))
    action.set("dedup__pairs_tested.sum", stats.pairs)
    equal_count = sum(number is not None for number in folding.reference)
    action.set("dedup__pairs_equal.sum", equal_count)
    rejected = [sum(pair.stage == stage for pair in comparisons) for stage in (1, 2, 3)]
    _add_instances(action, "dedup__rejected.sum", zip(STAGES, rejected, strict=True))
    if comparisons:
        action.set("dedup__stage1_reject.pct", 100 * rejected[0] / len(comparisons))


def _add_stats(action: Action, stats: Stats) -> None:
    """Add the time of each stage and the counts of work, of one comparison or the sum of all."""
    _add_instances(action, "dedup__time_duration.sum", zip(STAGES, stats.stage_ns, strict=True))
    for name, value in (
        ("dedup__compare_calls.sum", stats.memcmp_calls),
        ("dedup__bytes_offered.sum", stats.bytes_offered),
        ("dedup__bytes_hashed.sum", stats.digest_bytes),
        ("dedup__sections_hashed.sum", stats.digests),
        ("dedup__twin_probes.sum", stats.twin_probes),
        ("dedup__prefilter_hits.sum", stats.prefilter_hits),
        ("dedup__prefilter_false_positives.sum", stats.false_positives),
    ):
        action.set(name, value)


def percent(part: float, total: float) -> float:
    """Return the part in percent of the total; 0 if the total is 0."""
    return 100 * part / total if total else 0.0


def add_share(action: Action, cost: Cost, profile: Profile) -> None:
    """Add what percentage of the link's wall and processor time the cost of an action is."""
    action.set("link__time_share.pct", percent(cost.wall_ns, profile.wall_ns))
    action.set("link__cpu_time_share.pct", percent(cost.cpu_ns, profile.cpu_ns))


def add_advice(
    action: Action, phase: Phase, profile: Profile, results: PhaseResults | None
) -> None:
    """Add the metrics from which rules of the report estimate how much their advice would save."""
    if phase.tag == "read":
        action.set("link__debug_cpu_time_share.pct", percent(debug_ns(profile), profile.cpu_ns))
        if results is not None:
            options = debug_options(results)
            full_debug_count = sum(option == FULL for option in options.values())
            action.set("file__with_debug_info.sum", full_debug_count)
            debug_bytes: Counter[str] = Counter()
            for number, option in options.items():
                debug_bytes[option] += profile.files[number].debug_bytes
            _add_instances(action, "file__debug_bytes_by_option.sum", debug_bytes.items())
    if phase.tag == "merge" and profile.folding is not None:
        action.set("link__dedup_cpu_time_share.pct", percent(folding_ns(profile), profile.cpu_ns))
        action.set("link__loading_time_duration.sum", profile.loading_ns)


def add_pair(action: Action, pair: Verdict, profile: Profile) -> None:
    """Add the cost and the result of one comparison."""
    stats = pair.stats
    duration_ns = sum(stats.stage_ns)
    action.set("link__time_duration.sum", duration_ns)
    add_share(action, Cost(wall_ns=duration_ns, cpu_ns=duration_ns), profile)
    _add_stats(action, stats)
    action.set("dedup__bytes_compared.sum", stats.bytes_compared)
    action.set("dedup__pairs_tested.sum", stats.pairs)
    action.set("dedup__pairs_equal.sum", int(pair.code == 0))
    action.set("dedup__code", pair.code)
    action.set("dedup__reason", pair.reason)


def add_output(action: Action, phase: Phase) -> None:
    """Add what phase finalize or write put into the output: sections, symbols or bytes."""
    action.set("elf__sections_written.sum", phase.sections)
    if phase.tag == "finalize":
        action.set("elf__symbols_written.sum", phase.symbols)
    else:
        action.set("elf__bytes_written.sum", phase.bytes_written)
        action.set("elf__write_time_duration.sum", phase.wall_ns)


def add_composition(action: Action, profile: Profile, results: PhaseResults) -> None:
    """Add the bytes of the output by origin, and by part and function as in `pylink size`."""
    if results.final is None:
        return
    image = results.final.image
    parts = output_parts(results.placed, image)
    rows = ((PATH_SEPARATOR.join(path), size) for path, size in parts)
    _add_instances(action, "elf__bytes_by_origin.sum", rows)
    sizes = measure_bytes(profile.output or "image", image)
    by_part = ((row.keys[0], row.installed) for row in size_rows(sizes, ("part",)))
    _add_instances(action, "elf__bytes_by_part.sum", by_part)
    _add_instances(action, "elf__bytes_by_function.sum", largest_functions(sizes, MAX_FUNCTIONS))


def _add_breakdown(action: Action, profile: Profile) -> None:
    """Add a metric with the share of each phase, for report sections that show a breakdown."""
    names = []
    for phase in profile.phases:
        name = f"link__{phase.tag.replace('-', '_')}_time_share.pct"
        action.set(name, percent(phase.wall_ns, profile.wall_ns))
        names.append(name)
    observers_name = "link__observers_time_share.pct"
    action.set(observers_name, percent(_observers_ns(profile), profile.wall_ns))
    names.append(observers_name)
    # Tools look up the parts of a breakdown by this name.
    action.set("breakdown:link__time_share.pct", ",".join(sorted(names)))


def _observers_ns(profile: Profile) -> int:
    """Return the wall time between phases: that of remarks, maps and the profile itself."""
    return max(profile.wall_ns - sum(phase.wall_ns for phase in profile.phases), 0)


def add_totals(action: Action, profile: Profile, results: PhaseResults | None) -> None:
    """Add the cost of the whole link, and the sums of all phases."""
    _add_cost(action, profile.cost)
    action.set("link__time_share.pct", 100.0)
    action.set("link__cpu_time_share.pct", 100.0)
    _add_breakdown(action, profile)
    _add_instances(
        action,
        "link__phase_time_duration.sum",
        [
            *((phase.tag, phase.wall_ns) for phase in profile.phases),
            ("observers", _observers_ns(profile)),
        ],
    )
    _add_instances(
        action,
        "link__phase_cpu_time_duration.sum",
        ((phase.tag, phase.cpu_ns) for phase in profile.phases),
    )
    floor = copy_floor_ns(profile, results)
    action.set("link__copy_floor_time_duration.sum", floor)
    if floor:
        action.set("link__time_per_copy_floor.ratio", profile.wall_ns / floor)
    # Single inputs are in the action of read only; there may be thousands.
    if any(phase.tag == "read" for phase in profile.phases):
        add_files(action, profile, by_file=False)
    add_sections(action, profile)
    add_relocations(action, profile)
    if profile.folding is not None:
        add_dedup(action, profile.folding, profile.saved_bytes)
    for phase in profile.phases:
        if phase.tag in ("finalize", "write"):
            add_output(action, phase)
    for name in ("bytes_copied", "bytes_compared", "bytes_hashed"):
        action.set(f"link__{name}.sum", sum(getattr(phase, name) for phase in profile.phases))
