# Two commands do everything: `make book` and `make test`. README.md shows the plain commands behind them.
SHELL := /bin/bash
PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# The kernel named python3 is the one of this environment, whatever kernels the user has registered elsewhere.
export JUPYTER_PREFER_ENV_PATH := 1
# pip reads every PIP_* variable of the environment by itself (PIP_EXTRA_INDEX_URL, PIP_CONSTRAINT, ...).

.DEFAULT_GOAL := help
.PHONY: help book pdf test lint lab labs-student bench clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 20

book: $(INSTALLED) ## Execute the notebooks, build the book, print where index.html is
	$(BIN)/python -m fgl_core.render

pdf: $(INSTALLED) ## Print the book that was built as one PDF; needs Chromium or Chrome
	$(BIN)/python -m fgl_core.pdf

test: lint ## Run every test, the notebooks included
	FGL_PROFILE=smoke $(BIN)/python -m pytest -n 2 --dist loadfile --nbval-lax --nbval-current-env

lint: $(INSTALLED) ## Check style, format and spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell

lab: $(INSTALLED) ## Open the notebooks in JupyterLab
	$(BIN)/jupyter lab notebooks

labs-student: $(INSTALLED) ## Write the labs without their solutions, to hand out
	$(BIN)/python -m fgl_core.labs

bench: $(INSTALLED) ## Measure speed and memory, beside a plain loop
	$(BIN)/python -m benchmarks

clean: ## Remove what was built; keep the environment, the data and the records
	rm -rf _build .pytest_cache .ruff_cache
	find . -path ./$(VENV) -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -prune -exec rm -rf {} +

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing the packages of requirements.lock; this takes some minutes ..."
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps -e .
	touch $@
