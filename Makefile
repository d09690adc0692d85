# `make demo` and `make test` set up what they need; `make help` lists the rest.

VENV   ?= .venv
PYTHON ?= python3
JOBS   ?= 2
SECONDS ?= 60
SINCE   ?= main

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# each worker of the tests has a core: threads of several matrix products would wait for one another
ALONE   := OPENBLAS_NUM_THREADS=1
# the releases that the tests were recorded with: a newer onnxruntime answers more calls; `make lock` moves them.
# Bytecode is written as modules are imported: compiling all of them takes half a minute, and most are never used.
LOCKED  := $(PIP) --no-compile --constraint ci.lock
# what writes the pages, records and stubs of this tree; the API reference is no file of it
WRITERS := $(patsubst tools/write_%.py,%,$(filter-out tools/write_api.py,$(sort $(wildcard tools/write_*.py))))
SOURCES := $(shell find src -not -path '*/__pycache__*')
MADE    := pyproject.toml README.md LICENSE $(SOURCES)

# What runs is the installed package, as a user has it: nothing is to leak in from this tree or elsewhere.
unexport PYTHONPATH PYTHONDONTWRITEBYTECODE
export PYTHONNOUSERSITE = 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test quick cover lint types contracts docs reference generated standard lock bench bench-quick fuzz sweep conversions web browser distributed clients clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.runtime $(VENV)/.package  ## read real handwritten digits with a model of Sabir's own
	@$(BIN)/sabir demo

test: $(VENV)/.test $(VENV)/.package  ## all tests, on the installed package
	$(ALONE) $(BIN)/python -m pytest -n $(JOBS) $(ARGS)

quick: $(VENV)/.dev  ## two minutes: lint and types of what changed since main, and the nearest tests: SINCE=main
	$(BIN)/python tools/quick.py --since $(SINCE) $(ARGS)

cover: $(VENV)/.cover $(VENV)/.package  ## the tests, with the lines that they cover and a floor for these
	$(ALONE) $(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term $(ARGS)

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev  ## pyright, strict
	$(BIN)/pyright --pythonpath $(BIN)/python

contracts: $(VENV)/.dev $(VENV)/.package  ## who may import whom
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/lint-imports --no-logo --no-cache --config tools/cycles.toml

docs: $(VENV)/.test $(VENV)/.package  ## the commands, snippets and docstring examples of the documentation, run
	$(BIN)/python -m pytest tests/repo $(ARGS)

reference: $(VENV)/.docs $(VENV)/.package  ## the API reference, as web pages in build/reference
	$(BIN)/python -W error::UserWarning tools/write_api.py build/reference

generated: $(VENV)/.test $(VENV)/.package  ## write all generated pages, records and stubs: ONLY="rules stubs"
	@for name in $(or $(ONLY),$(WRITERS)); do $(BIN)/python tools/write_$$name.py || exit 1; done

standard: $(VENV)/.test  ## compare our record of the standard with the newest onnx release
	$(PIP) --upgrade --upgrade-strategy only-if-needed onnx
	$(BIN)/python tools/standard.py

lock: $(VENV)/.dev  ## write ci.lock again: the newest release of everything that the extras name
	$(PIP) uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --no-annotate --upgrade --quiet -o ci.lock

bench: $(VENV)/.dev $(VENV)/.package  ## measure against the peers: ONLY="load graph" ZOO=folder BEFORE=src BENCH_THREADS=n
	$(BIN)/python benchmarks/run.py $(if $(ZOO),--zoo "$(ZOO)") $(if $(BEFORE),--before "$(BEFORE)") $(ONLY)

bench-quick: $(VENV)/.dev  ## five minutes: whether this tree is slower than the last commit; SINCE=COMMIT ONLY="squeezenet"
	$(BIN)/python benchmarks/quick.py $(if $(filter-out main,$(SINCE)),--since $(SINCE)) $(if $(ONLY),"$(ONLY)")

fuzz: $(VENV)/.fuzz $(VENV)/.package  ## coverage-guided fuzzing: ONLY="wire json" SECONDS=60 for each target
	$(BIN)/python fuzz/run.py $(ONLY) --seconds $(SECONDS)

sweep: $(VENV)/.test $(VENV)/.package  ## every operator version on hostile inputs: ARGS="--share 7" for one case in 7
	$(BIN)/python tools/sweep.py $(ARGS)

conversions: $(VENV)/.test $(VENV)/.package  ## every example and official case in every other opset: ARGS="--share 7"
	$(BIN)/python tools/conversions.py --jobs $(JOBS) $(ARGS)

web:  ## build the page of `sabir view` from the sources in `web`, and check these
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent check && npm run --silent build

browser: $(VENV)/.test $(VENV)/.package  ## the tests of that page in Chromium, after `make web`
	$(BIN)/python tools/browser_pages.py build/pages
	cd web && PAGES=$(CURDIR)/build/pages PYTHON=$(abspath $(BIN)/python) npm test --silent

distributed: $(VENV)/.ray $(VENV)/.package  ## the tests of work on several processes, with Ray
	$(ALONE) $(BIN)/python -m pytest -q tests/distributed $(ARGS)

clients: $(VENV)/.clients  ## packages that import onnx, on Sabir, in an environment without onnx
	$(ALONE) $(BIN)/python -m pytest -q tests/compat/test_clients.py $(ARGS)

clean:  ## remove what the other targets made
	rm -rf $(VENV) build dist web/node_modules .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: dependencies are installed again when pyproject.toml or ci.lock changes, the package when anything in it does.

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: pyproject.toml ci.lock | $(VENV)/.made
	$(LOCKED) '.[cli]'
	@touch $@

$(VENV)/.test: pyproject.toml ci.lock | $(VENV)/.made
	$(LOCKED) '.[test]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.cover: pyproject.toml ci.lock | $(VENV)/.made
	$(LOCKED) '.[cover]'
	@touch $@ $(VENV)/.test $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml ci.lock | $(VENV)/.made
	$(LOCKED) '.[docs]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.fuzz: pyproject.toml ci.lock | $(VENV)/.made
	$(LOCKED) '.[fuzz]'
	@touch $@ $(VENV)/.test $(VENV)/.runtime

# it has the extra of the documents, and builds the package and installs its wheel: neither is done once more
$(VENV)/.dev: pyproject.toml ci.lock | $(VENV)/.made
	$(LOCKED) '.[dev]'
	@touch $@ $(VENV)/.docs $(VENV)/.test $(VENV)/.runtime $(VENV)/.package

# Ray and what it needs are half a gigabyte, so that only one target has them
$(VENV)/.ray: pyproject.toml ci.lock | $(VENV)/.made
	$(LOCKED) '.[test,ray]'
	@touch $@ $(VENV)/.test $(VENV)/.runtime

# the distribution onnx is Sabir's: it satisfies what the clients require
$(VENV)/.clients: $(MADE) ci.lock | $(VENV)/.made
	$(LOCKED) .
	$(BIN)/python -m sabir.compat wheel $(VENV)
	$(LOCKED) $(VENV)/onnx-*.whl '.[clients]'
	@touch $@ $(VENV)/.package

# the built wheel, not this tree
$(VENV)/.package: $(MADE) | $(VENV)/.made
	$(PIP) --no-deps --force-reinstall .
	@touch $@
