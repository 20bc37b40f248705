"""What each opcode does, in modules by subject; `table.py` has all of their rows."""
