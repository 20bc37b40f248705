"""`pylink serve`: a process that has loaded the linker, and links for others of its user."""
