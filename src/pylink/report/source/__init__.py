"""Where the instructions of a report's cubins came from: source lines, PTX, disassembly."""
