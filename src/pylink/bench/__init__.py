"""What a link costs beside other linkers: `pylink bench`.

`command.py` is the command. A `given.Link` is the link that somebody named, a contender does it in
its way (`contenders.py`), a contest has all contenders do it in turn (`contest.py`) and leaves
`results.Results`, which tables, a page and a CSV show and which `compare.py` sets against another.
Nothing here is loaded by a link.
"""
