"""The interface of scripts: the classes of Nsight Compute's `ncu_report` module over a `Report`.

A script with `import pylink.report as ncu_report` runs unchanged. In three cases in which release
2022.3 crashes, pylink does not: objects keep their report alive, the value of a metric may be None,
and a filter that names no range, such as `/`, is a ValueError. The methods `metric_type`,
`metric_subtype`, `rollup_operation`, `unit`, `description`, `add_metric`, `workload_type` and
`rule_results_as_dicts` are from newer releases.
"""
