"""`pylink demo`: the cubins of a program, linked, compared with nvlink's result and measured."""
