"""Reports of links, in the file format of Nsight Compute.

`pylink.report.model` is a report in memory, `pylink.report.file` reads and writes files.
"""
