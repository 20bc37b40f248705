# Everything runs in a virtual environment of its own: VENV is where, PYTHON what it is made from.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# What pip installs beside pylink for the tests. EXTRAS=test leaves out nvlink and the CUDA compiler.
EXTRAS ?= test,oracle,cuda

# Releases of CUDA besides 13.0.88 that links are compared with, and all that there are.
ORACLES ?= 13.5
ALL_ORACLES := 12.9 13.1 13.2 13.3 13.4 13.5

# A header for the kernels is made of the tables of facts.
NATIVE := $(wildcard src/_native/*/* src/pylink/_native/*.pxd src/pylink/facts/*.py)

# The program `pylink` is made by an install.
LAUNCHER := setup.py $(wildcard src/_native/launcher/*)

.PHONY: help demo test oracles test-releases matrix lint types pytest bench fuzz test-gpu wheels site package clean

help:
	@echo "make demo      build, link real cubins, compare with nvlink's result, profile a link"
	@echo "make test      build, lint, check types, run all tests against nvlink"
	@echo "make test-releases  compare with nvlink of every release of CUDA that is followed"
	@echo "make bench     time pylink against nvlink and a plain copy"
	@echo "make fuzz      link damaged inputs under sanitizers, compare with nvlink; FUZZ=--jobs 1000000"
	@echo "make test-gpu  run linked kernels on the GPU of this machine"
	@echo "make site      the documentation as a site, in build/site"
	@echo "make wheels    wheels for all supported machines, in dist"
	@echo "make package   build wheel and sdist, install each and link with it"
	@echo "make clean     remove everything that was made here"

$(VENV)/bin/python:
	@$(PYTHON) scripts/check_machine.py
	$(PYTHON) -m venv $(VENV)

# The stamps say what is installed. Native code is built apart from the installs, by all cores, and
# only what changed. The bytecode is made here since PYTHONDONTWRITEBYTECODE, where it is set, keeps
# the first run from doing it.
INSTALL := PYLINK_NATIVE=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

$(VENV)/base: $(VENV)/bin/python pyproject.toml $(LAUNCHER)
	$(INSTALL) '.[build,plot]'
	@touch $@

$(VENV)/extras: $(VENV)/bin/python pyproject.toml $(LAUNCHER)
	$(INSTALL) '.[build,$(EXTRAS)]'
	@touch $(VENV)/base $@

$(VENV)/built: $(VENV)/base setup.py $(NATIVE)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# What a link starts from fits its sources only; a stale one costs two starts where none may be written.
$(VENV)/bundled: $(VENV)/built $(wildcard src/pylink/*.py src/pylink/*/*.py)
	$(BIN)/python -m compileall -q src/pylink
	$(BIN)/python -m pylink.command.bundle
	@touch $@

build/oracles/%.stamp: $(VENV)/bin/python scripts/install_oracle.py
	$(BIN)/python scripts/install_oracle.py $*
	@touch $@

oracles: $(ALL_ORACLES:%=build/oracles/%.stamp)

demo: $(VENV)/bundled
	$(BIN)/python demo/run.py

test: lint types pytest

lint: $(VENV)/extras $(VENV)/built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH=$(BIN):$$PATH cython-lint src/_native src/pylink/_native

types: $(VENV)/extras $(VENV)/built
	$(BIN)/mypy

# With nvlink installed no test may be skipped for the lack of it.
pytest: $(VENV)/extras $(VENV)/bundled $(if $(findstring oracle,$(EXTRAS)),$(ORACLES:%=build/oracles/%.stamp))
	PYLINK_REQUIRE_ORACLE=$(if $(findstring oracle,$(EXTRAS)),1,0) \
	    PYLINK_REQUIRE_RELEASES="$(if $(findstring oracle,$(EXTRAS)),$(ORACLES))" $(BIN)/pytest -n auto

# Programs of every release of CUDA that links can follow, against its nvlink; 600 MB to fetch.
test-releases: $(VENV)/extras $(VENV)/built oracles
	PYLINK_REQUIRE_RELEASES="$(ALL_ORACLES)" \
	    $(BIN)/pytest -n auto tests/differential/test_releases_linked.py \
	    tests/differential/test_second_stages.py tests/differential/test_release_12_9.py

# BENCH=--bench-large also links 10,000 cubins; BENCH="-k startup" runs a part.
bench: $(VENV)/extras $(VENV)/bundled
	$(BIN)/pytest benchmarks --benchmark-enable --benchmark-only --benchmark-columns=min,median,rounds $(BENCH)

# Generated programs of each release: equal links by family and kind of link. MATRIX may name --seeds,
# --archs and --variants; the tables for a change take some minutes, all of it takes hours.
RELEASES ?= all
MATRIX ?= --seeds 0:12 --archs 80,90a,100 --variants exec,r,relink,g,host,archive,archive-r
matrix: $(VENV)/extras $(VENV)/built oracles
	PYTHONPATH=tests $(BIN)/python -m differential.run --releases $(RELEASES) $(MATRIX) --brief

# A copy of the package with native code that ends at its first error in memory. `--help` of the fuzzer
# tells what FUZZ may be; findings go to build/fuzz/found.
FUZZ ?=
fuzz: $(VENV)/extras $(VENV)/built
	PYLINK_SANITIZE=1 $(BIN)/python setup.py --quiet build_py --build-lib build/fuzz/lib \
	    build_ext --build-lib build/fuzz/lib --build-temp build/fuzz/temp
	PYTHONPATH=tests $(BIN)/python -m fuzz --sanitized build/fuzz/lib $(FUZZ)

# pylink is there already; its extra is what pip adds.
test-gpu: $(VENV)/built
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pytest 'pylink-cuda[gpu]'
	$(BIN)/python -m pytest -rsf -p no:cacheprovider -o addopts= tests/gpu

# Wheels for x86-64 and aarch64, glibc and musl, for the Pythons named in PYTHONS.
PYTHONS ?= $(BIN)/python
wheels: $(VENV)/extras
	$(BIN)/python scripts/build_wheels.py --python $(PYTHONS)

site: $(VENV)/extras
	$(BIN)/python -m mkdocs build --strict

package: $(VENV)/extras $(VENV)/built
	$(BIN)/python scripts/check_package.py

clean:
	rm -rf $(VENV) build dist src/pylink.egg-info .mypy_cache .pytest_cache .ruff_cache .benchmarks .hypothesis
	find src -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
