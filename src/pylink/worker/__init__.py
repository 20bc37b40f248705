"""`pylink worker`: a process that links request by request, as Bazel's persistent workers do.

`command` reads requests and writes responses, `protocol` has their two forms (JSON and protobuf),
`requests` links several at once, each in a directory and with streams of its own.
"""
