"""Short descriptions of the metrics of a link; docs/profile.md has details."""

from __future__ import annotations

import re

# Descriptions of metrics by their names.
DESCRIPTIONS = {
    "dedup__bytes_compared.sum": "bytes of Mercury sections compared byte by byte",
    "dedup__bytes_hashed.sum": "bytes hashed to distinguish sections without comparing them",
    "dedup__bytes_offered.sum": "bytes of the sections passed to comparisons",
    "dedup__bytes_saved.sum": "bytes that the output is shorter than with --merc-dedup=off",
    "dedup__payload_bytes.sum": "bytes that comparisons found to be copies, even if kept",
    "dedup__code": "result code of a comparison; 0 means equal",
    "dedup__compare_calls.sum": "calls that compared the bytes of two sections",
    "dedup__objects.sum": "inputs with Mercury sections",
    "dedup__pairs_equal.sum": "comparisons of two inputs that found them equal",
    "dedup__pairs_tested.sum": "comparisons of two inputs",
    "dedup__prefilter_false_positives.sum": "sections that differ although their digests are equal",
    "dedup__prefilter_hits.sum": "sections found by their digest or size",
    "dedup__reason": "result of a comparison as text",
    "dedup__rejected.sum": "comparisons that a stage ended",
    "dedup__sections_hashed.sum": "sections hashed",
    "dedup__stage1_reject.pct": "share of the comparisons that the first stage ended",
    "dedup__time_duration.sum": "time in the stages of comparisons",
    "dedup__twin_probes.sum": "sections examined in search of an equal one",
    "elf__bytes_by_function.sum": "bytes of the output by function: the largest ones",
    "elf__bytes_by_origin.sum": "bytes of the output by kind of section, input and symbol",
    "elf__bytes_by_part.sum": "bytes of the output by part, as pylink size counts them",
    "elf__bytes_written.sum": "bytes of the output",
    "elf__sections_written.sum": "sections of the output",
    "elf__symbols_written.sum": "symbols of the output",
    "elf__write_time_duration.sum": "time of writing the output and putting it in place",
    "file__bytes_input.sum": "bytes of the cubins that are linked",
    "file__bytes_read.sum": "bytes of the input files",
    "file__cache_hit.pct": "share of the input that was in the cache of the operating system",
    "file__debug_bytes.sum": "bytes of debug sections in the inputs",
    "file__disk_bytes.sum": "bytes of the inputs that came from a disk",
    "file__disk_wait_duration.sum": "time in which reading waited for disks, as estimated",
    "file__folded_bytes.sum": "bytes of an input omitted because another input has equal ones",
    "file__helper_time_duration.sum": "total reading time of other threads of the link",
    "file__kept_bytes.sum": "bytes of an input that are in the output",
    "file__opened.sum": "input files",
    "file__parse_time_duration.sum": "time spent in checking headers, sections and symbols",
    "file__read_cpu_time_duration.sum": "processor time of reading",
    "file__read_time_duration.sum": "time of reading, with the wait for disks",
    "gpu__time_duration.sum": "the time of a link, for the window of Nsight Compute",
    "link__bytes_compared.sum": "bytes compared",
    "link__bytes_copied.sum": "bytes copied into the output",
    "link__bytes_hashed.sum": "bytes hashed",
    "link__copy_floor_time_duration.sum": "time of only reading the inputs and writing the output",
    "link__cpu_time_duration.sum": "processor time, of all threads and of compilers that ran",
    "link__cycles_elapsed.sum": "processor cycles",
    "link__inst_executed.sum": "processor instructions",
    "link__memory_peak_bytes.max": "peak memory of the process so far",
    "link__page_faults_major.sum": "page faults that waited for a disk",
    "link__page_faults_minor.sum": "page faults that did not wait for a disk",
    "link__phase_time_duration.sum": "time by phase",
    "link__relocations.sum": "relocations that the phase worked on",
    "link__sections.sum": "sections that the phase worked on",
    "link__step_time_duration.sum": "time by step of the phase",
    "link__symbols.sum": "symbols that the phase worked on",
    "link__target_arch": "the architecture that the link is for",
    "link__time_duration.sum": "wall time",
    "link__time_per_copy_floor.ratio": "time of the link over that of reading and writing only",
    "file__debug_bytes_by_option.sum": "debug bytes of inputs by the option that produced them",
    "file__with_debug_info.sum": "inputs with .debug_info, which only -G produces",
    "link__cpu_time_share.pct": "share of the processor time of the whole link",
    "link__debug_cpu_time_share.pct": "estimated share of processor time spent on debug bytes",
    "link__dedup_cpu_time_share.pct": "share of processor time spent on looking for copies",
    "link__loading_time_duration.sum": "time of loading the modules that look for copies",
    "link__phase_cpu_time_duration.sum": "processor time of each phase",
    "link__time_share.pct": "share of the time of the whole link",
    "py__alloc_blocks_live.sum": "blocks of memory that the interpreter holds",
    "py__gc_runs.sum": "runs of the interpreter's garbage collector",
    "reloc__applied.sum": "relocations resolved by the link",
    "reloc__applied_by_section.sum": "relocations resolved by the link, by kind of section",
    "reloc__bytes_patched": "bytes of an instruction that relocations may have changed",
    "reloc__input.sum": "relocations in the inputs",
    "reloc__inst_patched": "relocations applied to an instruction",
    "reloc__left_by_section.sum": "relocations left to the loader, by kind of section",
    "reloc__left_dynamic.sum": "relocations left to the loader",
    "sect__copied_bytes.sum": "bytes copied into output sections",
    "sect__discarded_bytes.sum": "bytes of input sections that are not in the output",
    "sect__folded_bytes.sum": "bytes of input sections omitted because of equal ones",
    "sect__input.sum": "sections in the inputs",
    "sect__input_bytes.sum": "bytes of input sections",
    "sect__kept.sum": "input sections that are in the output",
    "sect__merged.sum": "input sections that were linked",
    "sect__output.sum": "sections of the output",
    "sect__output_bytes.sum": "bytes of output sections",
    "sym__defined.sum": "symbols that the inputs define",
    "sym__functions.sum": "functions that the inputs define",
    "sym__input.sum": "symbols of the inputs",
    "sym__undefined.sum": "symbols that the inputs use but do not define",
    "sym__weak.sum": "weak symbols that the inputs define",
}

# Names of metrics that contain the name of a phase, such as `link__merge_time_share.pct`, or the
# word `observers`.
_PHASE_SHARE = re.compile(r"link__(\w+)_time_share\.pct")


def label(name: str) -> str:
    """Return the label of a metric that pylink records of links; for other metrics the name."""
    if name not in DESCRIPTIONS:
        match = _PHASE_SHARE.fullmatch(name)
        return f"Share of {match[1].replace('_', '-')}" if match else name
    description = DESCRIPTIONS[name]
    return description[0].upper() + description[1:]


def describe(name: str) -> str:
    """Return the description of a metric that pylink records of links; "" for other metrics."""
    if name in DESCRIPTIONS:
        return DESCRIPTIONS[name]
    match = _PHASE_SHARE.fullmatch(name)
    return f"share of the time of the whole link that {match[1]} took" if match else ""
