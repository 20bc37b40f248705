"""The interface of scripts: the classes of Nsight Compute's `ncu_report` module over a `Report`.

A script that says `import pylink.report as ncu_report` runs unchanged. Where release 2022.3 ends
the process, pylink does not: objects keep the report they belong to alive, a metric without a value
is None, and a filter without a name is a ValueError. Beyond that release there are `metric_type`,
`metric_subtype`, `rollup_operation`, `unit`, `description`, `add_metric`, `workload_type` and
`rule_results_as_dicts`, by the names that newer ones have.
"""
