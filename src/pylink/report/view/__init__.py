"""Reports for people: tables and bars on a terminal, CSV and JSON, a page for browsers, plots.

`pages` turns a report into what is shown, once; `terminal`, `flat`, `html` and `plots` show it.
"""
