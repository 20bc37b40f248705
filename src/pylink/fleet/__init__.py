"""Deduplication over whole build trees: an index of their sections, and questions about it.

`updates` keeps an index: a folder of fragments, Parquet files that say of some files what cubins
they hold and of each cubin what sections. A fragment appears whole and never changes; a later one
counts for the files that both name. `database` shows an index to DuckDB as tables of what is there
now, `questions` has what is asked often. What folding would take off the outputs no index can say:
`folding` asks the comparison of `pylink.mercury`, and links.

Nothing here is loaded by a link, and what needs a package that a link does not have says so when it
is used (`packages`).
"""
