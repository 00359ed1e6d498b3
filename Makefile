# Every target makes its environment first if that is missing or pyproject.toml changed: .venv, or .venv-python3.13 and
# the like for another Python, `make test PYTHON=python3.13`.
PYTHON ?= python3
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
# Compiled code is cached here: the on-disk cache does not notice edits in callees of other files.
TEST_CACHE := $(CURDIR)/build/numba-cache$(VENV)
# As many processes as there are cores share the tests.
PYTEST := -m pytest -n auto

.PHONY: demo pictures test test-exact test-bounds test-oldest fuzz setup fmt lint bench-smoke docs clean

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# The pictures of README and docs, drawn anew by the examples.
pictures: $(VENV)/.demo
	$(BIN)/python examples/demo.py docs/pictures
	$(BIN)/python examples/pictures.py docs/pictures

test: $(VENV)/.dev
	rm -rf $(TEST_CACHE)
	NUMBA_CACHE_DIR=$(TEST_CACHE) $(BIN)/python $(PYTEST)

# The long run of the problems that are judged in exact arithmetic; `make test` has 2,000 of them.
test-exact: $(VENV)/.dev
	NUMBA_CACHE_DIR=$(TEST_CACHE) SOFTMARGIN_EXACT_PROBLEMS=20000 $(BIN)/python $(PYTEST) tests/exact

# All tests with every index of compiled code checked: an IndexError instead of a write beside an array.
test-bounds: $(VENV)/.dev
	NUMBA_CACHE_DIR=$(TEST_CACHE)-bounds NUMBA_BOUNDSCHECK=1 $(BIN)/python $(PYTEST)

# The oldest versions that pyproject.toml allows.
test-oldest: .venv-oldest/.dev
	rm -rf $(TEST_CACHE)-oldest
	NUMBA_CACHE_DIR=$(TEST_CACHE)-oldest .venv-oldest/bin/python $(PYTEST)

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

# The site, in build/site: the code on the pages is run first, then Sphinx runs the examples and takes warnings as errors,
# and at last every link is followed.
docs: $(VENV)/.docs
	$(BIN)/python -m pytest tests/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	$(BIN)/python docs/check_site.py build/site

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .ruff_cache .mypy_cache docs/api/generated docs/auto_examples

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "softmargin needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,plot]"
	touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@

.venv-oldest/.dev: pyproject.toml
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-oldest/bin/python -m uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct -e ".[test,cli,plot,parquet]"
	touch $@
