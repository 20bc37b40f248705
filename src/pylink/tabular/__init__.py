"""Collections as tables: records in rows, columns with names and types."""
