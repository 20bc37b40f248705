"""Starts pylink quickly: a bundle of its modules, and the program that runs the bundle."""
