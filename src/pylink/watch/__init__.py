"""Who watches a link, told of each phase's result."""
