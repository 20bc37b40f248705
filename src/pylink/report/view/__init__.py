"""Shows reports: as tables and bars on a terminal, CSV and JSON, a page for browsers, plots.

`pages` prepares the contents of a report; `terminal`, `flat`, `html` and `plots` show them.
"""
