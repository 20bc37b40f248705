"""How a process starts: the bundle, and the program that runs it."""
