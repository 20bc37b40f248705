"""`pylink worker`: a process that links request by request, as Bazel's persistent workers do.

`command` reads requests and writes responses, `protocol` has both of their forms, `requests` does
several at once, each in a directory and with streams of its own.
"""
