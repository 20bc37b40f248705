"""The messages of report and section files, compiled from the .proto files beside this one.

`scripts/compile_protos.py` writes `compiled.py`. An installed pylink needs only protobuf, which is
in the extra `pylink-cuda[report]`. Numbers, types and labels of fields were found by reading and
writing reports with Nsight Compute 2022.3 and are checked against its published definitions in the
tests.
"""
