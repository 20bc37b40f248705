"""What a link cost: its phases, inputs, sections, relocations and comparisons.

`output.Collector` observes a link that asks for a profile and makes a `model.Profile` of it, which
`--profile`, `--profile-aprof` and `--time-trace` write in three formats and `LinkResult.profile`
has in Python. Nothing here is imported by a link that asks for none of them.
"""
