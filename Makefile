# Two commands do all the set-up: `make demo` and `make test`. Neither installs again what is installed.
# The first of these that is 3.11 or newer and can make an environment; or name one: make PYTHON=python3.12 test
PYTHON ?= python3 python python3.14 python3.13 python3.12 python3.11
VENV   := .venv
BIN    := $(VENV)/bin
# The constraints hold for the package's own build environment too: the first by pip until 25.2, the second from 25.3.
# pip splits both at blanks, so they are relative: the folder's own path may have some.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Spread by work: a worker that is done takes over what another has not begun.
PYTEST := $(BIN)/pytest -n auto --dist worksteal

.PHONY: demo test test-all test-plain test-adapters lint format bench bench-docs torture torture-docs docs tutorials dist try-dist clean

demo: $(VENV)/.core
	$(BIN)/verirec demo --out verirec-demo

test: lint
	$(PYTEST)

test-all: lint
	$(PYTEST) -m ''

# The numerical tests as on a processor without vector instructions, where sums add up in another order.
test-plain: $(VENV)/.dev
	ATEN_CPU_CAPABILITY=default $(PYTEST) tests/losses tests/models tests/training tests/methods/test_method_losses.py

# Adapters and trackers against the real libraries, each in an environment of its own: their needs differ, and some are behind. LightFM, whose
# package no longer builds by itself, is tested where somebody has built it.
LIBRARIES ?= lenskit cornac rectools recbole mlflow
OLDER     := numpy<2 pandas<3 pyarrow<21 setuptools<80
test-adapters: $(BIN)/python
	@mkdir -p .adapters && grep '^torch==' constraints.txt > .adapters/torch.txt
	@set -e; for library in $(LIBRARIES); do \
	  case $$library in recbole) older='$(OLDER) scipy<1.14';; rectools) older='$(OLDER)';; *) older=;; esac; \
	  echo "$$library"; $(BIN)/python -m venv .adapters/$$library; \
	  env -u PIP_BUILD_CONSTRAINT PIP_CONSTRAINT=.adapters/torch.txt .adapters/$$library/bin/pip install --quiet \
	    --editable . pytest hypothesis sybil $$library $$older; \
	  .adapters/$$library/bin/python -m pytest -k $$library \
	    tests/adapters/test_other_libraries.py tests/assessment/test_tracking.py; \
	done

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# The speed of a fixed set of cases, about five minutes on two cores; AGAINST=FILE compares with another revision's file,
# ONLY="group ..." runs a part, LARGE=1 adds what takes minutes each. docs/speed.md is written from the file.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed $(if $(ONLY),--only $(ONLY)) $(if $(LARGE),--large) $(if $(AGAINST),--against $(AGAINST))

bench-docs: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed.page

# Odd input to every public entry, kills and failing disks: about twenty minutes on two cores; SECONDS=60 for a short form,
# ONLY="fuzz" for a part, SEED=7 for other draws. docs/reliability.md is written from the file.
torture: $(VENV)/.dev
	$(BIN)/python -m torture $(if $(ONLY),--only $(ONLY)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

torture-docs: $(VENV)/.dev
	$(BIN)/python -m torture.page

# The site, into site/: it opens from files, without a network. `make tutorials` runs the notebooks and keeps what they print.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --quiet

tutorials: $(VENV)/.dev
	$(BIN)/python -m website.pictures
	$(BIN)/python -m website.run_notebooks

# What is released, into dist/; then tried: installed from the wheel alone, with each extra in an environment of its own.
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

try-dist: dist
	$(BIN)/python -m website.try_wheel $(if $(PYTHONS),--pythons $(PYTHONS)) $(if $(EXTRAS),--extras $(EXTRAS))

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/.core

$(BIN)/python:
	@for python in $(PYTHON); do \
	  "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  echo "$$python -m venv $(VENV)"; \
	  "$$python" -m venv $(VENV) && exit 0; \
	  rm -rf $(VENV); \
	done; \
	echo "verirec needs Python 3.11 or newer, with venv and pip; name one: make PYTHON=python3.12 ..."; exit 1

clean:
	rm -rf $(VENV) .adapters verirec-demo site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
