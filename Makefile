# Two commands do all the set-up: `make demo` and `make test`. Neither installs again what is installed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The constraints hold for the package's own build environment too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-all lint format clean

demo: $(VENV)/.core
	$(BIN)/verirec demo --out verirec-demo

test: lint
	$(BIN)/pytest -n auto --dist loadfile

test-all: lint
	$(BIN)/pytest -n auto --dist loadfile -m ''

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.core

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "verirec needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) verirec-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
