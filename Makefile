# Needs make and a Python of at least 3.11 with its venv module; all else is set up in $(VENV).
#
#   make demo                        set up, then rank all policies and agents
#   make test                        set up, then run every check and test
#   make docs                        set up, then build the documentation, docs/_build/html
#   make setup PYTHON=python3.12     choose the interpreter
#   make setup PIP_ARGS="..."        pass options to pip, such as another index to take torch from

PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
PYTEST_ARGS ?= -n auto
DEMO_ARGS ?=

# Without bytecode each process that imports PyTorch compiles 2,500 files anew, which takes 8 s.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
DEMO_STAMP := $(VENV)/.agents
STAMP := $(VENV)/.dev

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo docs test lint smoke pytest coverage clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## make a virtual environment with everything installed, once

# Bytecode is made at the first import, as most files are never imported. The checkout is installed as a
# path (compat): a clone named crawl_envs then hides no package from scripts in the folder above it.
$(STAMP) $(DEMO_STAMP): $(VENV)/.%: pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "error: $(PYTHON) not found; install Python 3.11 or later, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is $$("$(PYTHON)" --version 2>&1), but 3.11 or later is needed; name one: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: $(PYTHON) has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { set -x; "$(PYTHON)" -m venv $(VENV); }
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile $(PIP_ARGS) \
	  --config-settings editable_mode=compat -c constraints.txt -e ".[$*]"
	@touch $@

demo: $(DEMO_STAMP) ## rank the shipped policies and agents on a small suite; results go to results/mini
	$(BIN)/python -m scripts.rank mini $(DEMO_ARGS)

docs: setup ## build the documentation into docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

test: lint smoke pytest ## run every check and test

lint: setup ## check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

smoke: setup ## run the benchmark in its shortest form, into a temporary folder
	@echo '$(BIN)/python -m scripts.benchmark --quick --out <a temporary folder>'
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	  $(BIN)/python -m scripts.benchmark --quick --out "$$folder"

pytest: setup ## run the tests alone
	$(BIN)/python -m pytest $(PYTEST_ARGS)

coverage: setup ## run the tests and report the branches that none takes
	mkdir -p runs/coverage && rm -f runs/coverage/data*
	PYTHONPATH="$(CURDIR)" $(BIN)/python -m coverage run -m pytest $(PYTEST_ARGS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist *.egg-info docs/_build docs/generated
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
