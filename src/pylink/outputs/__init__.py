"""Files that a link writes beside the linked file: maps, dependency rules, reproducers."""
