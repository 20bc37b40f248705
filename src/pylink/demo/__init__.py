"""`pylink demo`: links the cubins of a program, and compares result and time with nvlink."""
