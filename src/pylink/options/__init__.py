"""What can be asked of a link: the table of options, and all that follows from it."""
