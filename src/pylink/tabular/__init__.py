"""Tables of records, as data libraries read them: columns have names and types."""
