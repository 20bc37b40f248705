# Everything runs in a virtual environment of its own: VENV is its directory, PYTHON creates it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Extras that pip installs for the tests. EXTRAS=test omits nvlink and the CUDA compiler.
EXTRAS ?= test,oracle,cuda

# Versions of these packages, with hashes; CONSTRAINTS= installs the newest that pyproject.toml allows.
CONSTRAINTS ?= constraints.txt

# Prints the title of a step, and its output only if it fails; VERBOSE=1 shows everything.
STEP := @$(PYTHON) scripts/step.py

# Releases of CUDA besides 13.0.88 with which `make test` compares links, and all releases.
ORACLES ?= 13.5
ALL_ORACLES := 12.9 13.1 13.2 13.3 13.4 13.5 13.0.48 13.1.80 13.2.51 13.2.78 13.3.33 13.4.59

# Sources of the native code. The headers with constants are generated from the tables of facts.
NATIVE := $(wildcard src/_native/*/* src/pylink/_native/*.pxd src/pylink/facts/*.py)

# Sources of the program `pylink`, which an install compiles; it contains a table of nvcc's options.
LAUNCHER := setup.py $(wildcard src/_native/launcher/*) \
    $(addprefix src/pylink/devicelink/,nvccoptions.py nvcctable.py)

.PHONY: help demo test tools oracles test-releases test-wheels test-newest test-lowest constraints matrix \
    features lint types pytest unit coverage bench bench-compare limits growth fuzz races hazards test-gpu wheels site package clean

help:
	@echo "make demo      build, link real cubins, compare with nvlink's result, profile a link"
	@echo "make test      build, lint, check types, run all tests against nvlink"
	@echo "make unit      build, run the unit tests alone"
	@echo "make coverage  lines and branches that tests reach; TESTS=tests/golden, UNREACHED=src/pylink/linker.py"
	@echo "make lint      check style of Python, Cython and C, and imports"
	@echo "make types     check types with mypy"
	@echo "make oracles   install the tools of every release of CUDA to compare with"
	@echo "make matrix    compare generated programs of each release; MATRIX and RELEASES choose them"
	@echo "make test-releases  compare with nvlink of every release of CUDA that is followed"
	@echo "make test-wheels  measure public wheels with known figures; 230 MB to fetch"
	@echo "make features  link a program of each feature for all chips; FEATURES=\"-k barriers\" runs a part"
	@echo "make test-newest  run the unit tests with the newest packages; test-lowest: with the lowest"
	@echo "make constraints  record the newest versions of all packages in constraints.txt"
	@echo "make growth    hold forecasts of growth to links that are really doubled"
	@echo "make bench     time pylink against nvlink and a plain copy"
	@echo "make bench-compare BASE=COMMIT  time the working tree against a commit; fails if a link got slower"
	@echo "make limits    count what stands in the way of faster links; LIMITS=--help shows what else"
	@echo "make fuzz      link damaged inputs under sanitizers, compare with nvlink; FUZZ=--jobs 1000000"
	@echo "make races     link by 1, 2, 3 and 8 threads under the thread sanitizer; RACES=--inputs 100 for larger links"
	@echo "make hazards   check code of ptxas and nvlink for hazards; HAZARDS=\"some.whl libother.so\" adds files"
	@echo "make test-gpu  run linked kernels on the GPU of this machine"
	@echo "make site      the documentation as a site, in build/site"
	@echo "make wheels    wheels for all supported machines, in dist"
	@echo "make package   build wheel and sdist, install each and link with it"
	@echo "make clean     remove everything that was made here"

$(VENV)/bin/python:
	@$(PYTHON) scripts/check_machine.py
	$(STEP) "making an environment in $(VENV)" $(PYTHON) -m venv $(VENV)

# Empty files in VENV (base, extras, built, bundled) record what is installed. Native code is not built
# by the install but by a step of its own, which compiles only changed modules, on all cores. Bytecode is
# compiled here because the first run does not do it if PYTHONDONTWRITEBYTECODE is set.
INSTALL := $(BIN)/python scripts/install.py --constraints "$(CONSTRAINTS)"
INSTALLED := $(VENV)/bin/python pyproject.toml scripts/install.py $(CONSTRAINTS) $(LAUNCHER) \
    $(VENV)/$(if $(CONSTRAINTS),recorded,newest)

# One of these files records which versions the environment has; asking for the others installs them.
$(VENV)/recorded $(VENV)/newest: $(VENV)/bin/python
	@rm -f $(VENV)/recorded $(VENV)/newest
	@touch $@

$(VENV)/base: $(INSTALLED)
	$(STEP) "installing what the demo needs" $(INSTALL) build,plot
	@touch $@

$(VENV)/extras: $(INSTALLED)
	$(STEP) "installing the packages for tests ($(EXTRAS)); the first time about a minute" \
	    $(INSTALL) build,$(EXTRAS)
	@touch $(VENV)/base $@

# One of these files records whether native code was built with PYLINK_DEBUG=1; asking for the other
# kind builds all of it again.
$(VENV)/debug $(VENV)/optimized: $(VENV)/bin/python
	@rm -f $(VENV)/debug $(VENV)/optimized
	@touch $@

$(VENV)/built: $(VENV)/base $(VENV)/$(if $(filter 1,$(PYLINK_DEBUG)),debug,optimized) setup.py $(NATIVE)
	$(STEP) "building the native code; the first time about two minutes" \
	    $(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# The start-up bundle must match the sources: with a stale one, each link starts Python twice if it
# cannot write a new one.
$(VENV)/bundled: $(VENV)/built $(wildcard src/pylink/*.py src/pylink/*/*.py)
	@$(BIN)/python -m compileall -q src/pylink
	@$(BIN)/python -m pylink.startup.bundle
	@touch $@

build/oracles/%.stamp: $(VENV)/bin/python scripts/install_oracle.py
	$(STEP) "installing the tools of CUDA $* to compare with" $(BIN)/python scripts/install_oracle.py $*
	@touch $@

oracles: $(ALL_ORACLES:%=build/oracles/%.stamp)

demo: $(VENV)/bundled
	@$(BIN)/pylink demo build/demo

test: tools lint types pytest

# nvcc calls g++, and tests call git; said before minutes of building.
tools:
	@$(PYTHON) scripts/check_machine.py $(if $(findstring oracle,$(EXTRAS)),tests)

lint: $(VENV)/extras $(VENV)/built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	PATH=$(BIN):$$PATH cython-lint src/_native src/pylink/_native
	$(BIN)/clang-format --dry-run --Werror src/_native/*/*.[ch]

types: $(VENV)/extras $(VENV)/built
	$(BIN)/mypy

# If EXTRAS installs nvlink, a test that is skipped because it is missing fails the run.
pytest: $(VENV)/extras $(VENV)/bundled $(if $(findstring oracle,$(EXTRAS)),$(ORACLES:%=build/oracles/%.stamp))
	PYLINK_REQUIRE_ORACLE=$(if $(findstring oracle,$(EXTRAS)),1,0) \
	    PYLINK_REQUIRE_RELEASES="$(if $(findstring oracle,$(EXTRAS)),$(ORACLES))" $(BIN)/pytest -n auto

unit: $(VENV)/extras $(VENV)/bundled
	$(BIN)/pytest -n auto tests/unit

# Lines and branches that the unit and golden tests reach, in a build that counts them. TESTS may name
# others. UNREACHED=FILE runs none: it prints the lines of a source that the last run did not reach.
# The copy of the package finds the demo where a checkout has it.
TESTS ?=
UNREACHED ?=
COUNTED := build/coverage/src
coverage: $(VENV)/extras $(VENV)/built
	@rm -rf $(COUNTED)
	$(STEP) "building native code that counts; the first time about a minute" \
	    env PYLINK_COVERAGE=1 $(BIN)/python setup.py --quiet build_py --build-lib $(COUNTED) \
	    build_ext --build-lib $(COUNTED) --build-temp build/coverage/temp
	@ln -sfn ../../demo build/coverage/demo
	$(BIN)/python scripts/measure_coverage.py $(if $(UNREACHED),--unreached $(UNREACHED)) $(TESTS)

# The unit tests with the newest packages of the index, and with the lowest that pyproject.toml allows.
test-newest test-lowest: test-%: $(VENV)/uv
	$(BIN)/python scripts/test_versions.py $*

$(VENV)/uv: $(INSTALLED)
	$(STEP) "installing uv" $(INSTALL) constraints
	@touch $@

# Records the newest versions of all packages in constraints.txt, for every Python that is supported.
constraints: $(VENV)/bin/python
	$(STEP) "installing uv" $(BIN)/python -m pip install --disable-pip-version-check "uv>=0.9"
	$(STEP) "recording versions" $(BIN)/python scripts/record_versions.py

# Programs of every release of CUDA that links can follow, against its nvlink; 600 MB to fetch.
test-releases: $(VENV)/extras $(VENV)/built oracles
	PYLINK_REQUIRE_RELEASES="$(ALL_ORACLES)" \
	    $(BIN)/pytest -n auto tests/differential/test_releases_linked.py \
	    tests/differential/test_second_stages.py tests/differential/test_release_12_9.py \
	    tests/differential/test_older_objects_linked.py \
	    tests/differential/test_inherited_attributes.py

# `pylink size` and `pylink audit` on public wheels with known figures; 230 MB to fetch.
WHEELS := bitsandbytes==0.50.2 faiss-gpu-cu12==1.14.1.post1 nvidia-curand==10.4.5.25
test-wheels: $(VENV)/extras $(VENV)/bundled
	$(STEP) "fetching the wheels to measure" $(BIN)/python -m pip download --quiet --no-deps \
	    --disable-pip-version-check --only-binary :all: --python-version 3.11 --abi cp311 --abi none \
	    --platform manylinux_2_17_x86_64 --platform manylinux_2_24_x86_64 \
	    --platform manylinux_2_27_x86_64 --dest build/wheels $(WHEELS)
	$(STEP) "fetching a wheel to compare with" $(BIN)/python -m pip download --quiet --no-deps \
	    --disable-pip-version-check --only-binary :all: --python-version 3.11 \
	    --platform manylinux_2_24_x86_64 --dest build/wheels bitsandbytes==0.49.2
	$(BIN)/pytest -n 2 tests/wheels/public_wheels.py

# BENCH=--bench-large also links 10,000 cubins; BENCH="-k startup" runs a part.
bench: $(VENV)/extras $(VENV)/bundled
	$(BIN)/pytest benchmarks --benchmark-enable --benchmark-only --benchmark-columns=min,median,rounds $(BENCH)

# Builds BASE, and HEAD (the working tree without one), lets both link in turn, and fails if a link is
# slower with HEAD. COMPARE="--counts 100 --rounds 11" measures less; `--help` has all options.
BASE ?= HEAD^
HEAD ?=
COMPARE ?=
bench-compare: $(VENV)/extras $(VENV)/bundled
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.compare_commits $(COMPARE) $(BASE) $(HEAD)

# Prints what a large link of this machine spends its time on, beside a copy of the same bytes. LIMITS may be
# "--steps" (the time of each native function), "--space", or "--help" (all options).
limits: $(VENV)/extras $(VENV)/bundled
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.limits $(LIMITS)

# Compares forecasts of growth with links of twice the size; CHECK may name kinds (docs/growth.md).
growth: $(VENV)/extras $(VENV)/bundled
	PYTHONPATH=.:tests $(BIN)/python -m benchmarks.check_growth $(CHECK)

# Links generated programs of each release, and counts equal links by family and kind of link. MATRIX may
# name --seeds, --archs and --variants; the tables for a change take some minutes, everything hours.
RELEASES ?= all
MATRIX ?= --seeds 0:12 --archs 80,90a,100 --variants exec,r,relink,g,host,archive,archive-r
matrix: $(VENV)/extras $(VENV)/built oracles
	PYTHONPATH=tests $(BIN)/python -m differential.run --releases $(RELEASES) $(MATRIX) --brief

# One program for each feature of CUDA C++ and PTX, all chips, releases and kinds of link; some minutes.
FEATURES ?=
features: $(VENV)/extras $(VENV)/bundled build/oracles/13.5.stamp
	PYLINK_FEATURES=all PYLINK_REQUIRE_ORACLE=1 PYLINK_REQUIRE_RELEASES=13.5 \
	    $(BIN)/pytest -n auto tests/differential/test_features.py $(FEATURES)

# A copy of the package with native code that ends at its first error in memory. `--help` of the fuzzer
# tells what FUZZ may be; findings go to build/fuzz/found.
FUZZ ?=
fuzz: $(VENV)/extras $(VENV)/built
	@$(STEP) "building native code with the sanitizers; the first time some minutes" \
	    env PYLINK_SANITIZE=1 $(BIN)/python setup.py --quiet build_py --build-lib build/fuzz/lib \
	    build_ext --build-lib build/fuzz/lib --build-temp build/fuzz/temp
	PYTHONPATH=tests $(BIN)/python -m fuzz --sanitized build/fuzz/lib $(FUZZ)

# Links the programs of the fuzzer, undamaged, by several threads under the thread sanitizer.
RACES ?=
races: $(VENV)/extras $(VENV)/built
	@$(STEP) "building native code with the thread sanitizer; the first time some minutes" \
	    env PYLINK_SANITIZE=thread $(BIN)/python setup.py --quiet build_py --build-lib build/races/lib \
	    build_ext --build-lib build/races/lib --build-temp build/races/temp
	PYTHONPATH=.:tests $(BIN)/python -m fuzz.races --sanitized build/races/lib $(RACES)

# The checker of hazards must report nothing about code of the real compiler and linker (docs/proof.md).
hazards: $(VENV)/extras $(VENV)/built
	PYTHONPATH=tests $(BIN)/python -m hazards.measure $(HAZARDS)

# pylink itself is installed already; pip adds only the packages of its extra `gpu`.
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
