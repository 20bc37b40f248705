"""Fuzzing of links: real inputs, changed where their structure says, linked, compared with nvlink.

    make fuzz                          some minutes, with sanitizers
    make fuzz FUZZ='--jobs 1000000'    as many links

A job is drawn from its number alone, so a number repeats it. `corpus` has the programs, `draft` the
structure of a cubin, `edits` and `wrapping` what is changed, `jobs` what one link is; `worker`
links in a process of its own, which `process` keeps, `verdict` judges what was linked, `campaign`
does that for many jobs, `minimise` takes away what a finding does not need. CONTRIBUTING.md says
how to use it.
"""
