"""Static check of the waits and stalls that machine code (SASS) needs to be right."""
