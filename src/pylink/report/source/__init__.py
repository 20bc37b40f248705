"""The origin of instructions in a report's cubins: source lines, PTX, disassembly."""
