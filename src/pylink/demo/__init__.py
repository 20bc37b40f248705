"""`pylink demo`: links the cubins of a program, compares the result with nvlink's, measures."""
