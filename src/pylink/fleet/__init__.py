"""Deduplication over whole build trees: an index of their sections, and questions about it.

`updates` keeps an index: a directory of fragments. A fragment is Parquet files that list the cubins
in some files, and the sections of each cubin. A fragment appears atomically and never changes; for
files in several fragments the last one counts. `database` shows the present state of an index to
DuckDB as tables, `questions` has common questions. An index cannot tell how much folding saves, so
`folding` compares with `pylink.mercury`, and links.

A link loads nothing of this. Missing packages are reported when they are used (`packages`).
"""
