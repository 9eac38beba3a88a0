# make demo: a model from Python to prepared weights to results; make test: everything that must hold.
# Each makes .venv on first use. PYTHON names another interpreter (3.11 or newer), VENV another place.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# This version has a CPU build; an unpinned torch brings gigabytes of CUDA packages.
TORCH ?= torch==2.13.0
# Set to run the tests one after another: make test JOBS=0
JOBS ?= 2
# The interpreter that has the benchmark's peers: test/benchmark/README.md.
PEERS ?= $(BIN)/python

# Tests start many processes: without bytecode each compiles all sources again, 0.4 s, and so does each collection, 6 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: bench clean coverage demo docs fuzz gpu-check kernel-table lint lit mutants pytest test types

demo: $(VENV)/.stamp
	$(BIN)/python -m relaxir.tools.demo

# Pyright keeps one processor busy for a minute: the tests have the other one, and both afterwards.
test: lint lit
	$(MAKE) --no-print-directory -j2 types pytest

lint: $(VENV)/.stamp-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# The unpacked wheel: what is checked is what is shipped. Old build files would end up in it.
types: $(VENV)/.stamp-test
	rm -rf build/lib build/bdist.* build/wheel build/types
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel .
	$(BIN)/python -m zipfile -e build/wheel/relaxir-*.whl build/types
	$(BIN)/python test/support/bindings_stubs.py
	$(BIN)/pyright

lit: $(VENV)/.stamp-test
	$(BIN)/lit test

pytest: $(VENV)/.stamp-test
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

bench: $(VENV)/.stamp-test
	$(BIN)/python test/benchmark/suite.py --quick --peers-python $(PEERS)

# make fuzz MINUTES=60; make fuzz ONLY=texts SEED=17 runs one seed again: test/README.md. JOBS: generators that run at once.
MINUTES ?= 5
fuzz: $(VENV)/.stamp-test
	$(BIN)/pip install --quiet --editable '.[fuzz]'
	PYTHONPATH=test $(BIN)/python -m fuzzing --minutes $(MINUTES) --jobs $(JOBS) \
	    $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED)) $(if $(FROM),--from $(FROM))

# Needs a GPU, its driver, and torch with CUDA: make gpu-check TORCH=torch
gpu-check: $(VENV)/.stamp-test
	$(BIN)/python test/benchmark/gpu_check.py

# What ptxas makes of GPU kernels, again: registers, instructions. A test holds kernels to the table.
kernel-table: $(VENV)/.stamp-test
	PYTHONPATH=test $(BIN)/python -m support.kernel_table

# Branches that tests reach, of everything that runs in their processes: make coverage PYTHON=python3.14 VENV=build/venv-3.14
# From Python 3.14 on the interpreter itself counts; before, a function is called per line, two to three times as long as make test.
# Floors are what they reach, rounded down: test/README.md.
coverage: $(VENV)/.stamp-test
	$(BIN)/pip install --quiet --editable '.[coverage]'
	rm -rf build/coverage && mkdir -p build/coverage
	COVERAGE_FILE=$(CURDIR)/build/coverage/data $(BIN)/coverage run $(BIN)/lit -q test
	COVERAGE_FILE=$(CURDIR)/build/coverage/data $(BIN)/coverage run -m pytest -q -n $(JOBS) --dist worksteal
	COVERAGE_FILE=$(CURDIR)/build/coverage/data $(BIN)/python -W ignore -m coverage run test/conformance/onnx_backend.py --check
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=miss > build/coverage/by-file.txt
	for part in dialect:98 lowering:97 python:95; do \
	    $(BIN)/coverage report --include="$${part%:*}/*" --fail-under=$${part#*:} --format=total || exit 1; done

# make mutants COUNT=40 SEED=1 ONLY=dialect/ops: test/fuzzing/mutants.py
COUNT ?= 20
mutants: $(VENV)/.stamp-test
	PYTHONPATH=test $(BIN)/python -m fuzzing.mutants --count $(COUNT) --seed $(or $(SEED),0) $(if $(ONLY),--only $(ONLY))

# Guides and reference as pages: build/docs/site/index.html. A link that leads nowhere, or a docstring that is wrong, fails it.
docs: $(VENV)/.stamp
	$(BIN)/pip install --quiet --editable '.[docs]'
	rm -rf build/lib build/bdist.* build/docs
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir build/docs/wheel .
	$(BIN)/python -m zipfile -e build/docs/wheel/relaxir-*.whl build/docs/package
	$(BIN)/python .ci/docs/build.py

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.stamp-test: $(VENV)/.stamp
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable '.[test,transformers]'
	touch $@
