"""`pylink demo`: links the cubins of a program, and compares the result and the time with nvlink."""
