"""Deduplication over whole build trees: an index of their sections, and questions about it.

`updates` keeps an index: a directory of fragments. A fragment is Parquet files that list the cubins
in some files, and the sections of each cubin. A fragment appears atomically and never changes; if
several fragments list a file, the last one counts. `database` shows the present state of an index
to DuckDB as tables, `questions` has common questions. An index cannot tell how much a link saves by
folding equal Mercury sections into one, so `folding` compares the files, and links them.

A link loads no module of this package. Missing Python packages are reported when they are used
(`packages`).
"""
