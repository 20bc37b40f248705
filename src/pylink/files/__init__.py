"""Reading and writing files safely: atomically, from pipes, with memory of their own."""
