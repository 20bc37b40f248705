"""The options of a link: their table, the parser, checks and help."""
