# One folder, one environment: every target makes .venv first if it is missing or pyproject.toml changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiled code is cached here: the on-disk cache does not notice edits in callees of other files.
TEST_CACHE := $(CURDIR)/build/numba-cache

.PHONY: demo test test-exact fuzz setup fmt lint bench-smoke docs clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	rm -rf $(TEST_CACHE)
	NUMBA_CACHE_DIR=$(TEST_CACHE) $(BIN)/python -m pytest

# The long run of the problems that are judged in exact arithmetic; `make test` has 2,000 of them.
test-exact: $(VENV)/.dev
	NUMBA_CACHE_DIR=$(TEST_CACHE) SOFTMARGIN_EXACT_PROBLEMS=20000 $(BIN)/python -m pytest tests/exact

# Damaged files of every format; a mutant is known by its number and SEED.
fuzz: N ?= 10000
fuzz: SEED ?= 0
fuzz: $(VENV)/.dev
	NUMBA_CACHE_DIR=$(TEST_CACHE) $(BIN)/python tests/fuzz --count $(N) --seed $(SEED)

setup: $(VENV)/.dev

fmt: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench-smoke: $(VENV)/.dev
	$(BIN)/python -m benchmarks.tables --quick

docs: $(VENV)/.dev
	$(BIN)/python -m pytest tests/docs

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "softmargin needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,plot]"
	touch $@ $(VENV)/.demo
