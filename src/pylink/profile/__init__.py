"""The profile of a link: costs of phases, inputs, sections, relocations and deduplication.

`output.Collector` observes a link and creates a `model.Profile`. `--profile`, `--profile-aprof` and
`--time-trace` write it in three formats, and in Python it is `LinkResult.profile`. A link without a
profile imports nothing from here.
"""
