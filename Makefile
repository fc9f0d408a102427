# The README's commands. Everything is made in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH_INDEX ?=
PIP := $(BIN)/pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run install test check lint types mypy pyright contract bench scale soak crash evals evals-retrieval clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

run: install ## Install if needed, then serve on http://127.0.0.1:8001
	$(BIN)/privategpt serve

install: $(VENV)/.installed ## Make .venv with locked packages and the verified bundled models

$(VENV)/.installed: requirements.lock requirements-nodeps.lock pyproject.toml
	@echo "Installing into $(VENV): the first time this takes some minutes and says little"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -r requirements.lock
	$(PIP) install --quiet --no-deps -r requirements-nodeps.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/privategpt models --verify
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock requirements-dev-nodeps.lock
	$(PIP) install --quiet -r requirements-dev.lock
	$(PIP) install --quiet --no-deps -r requirements-dev-nodeps.lock
	touch $@

test: $(VENV)/.installed-dev ## Install what tests need and run them all
	$(BIN)/pytest

check: $(VENV)/.installed-dev ## Lint, types, import contract, then all tests with coverage
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint mypy pyright contract
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/deptry .

types: mypy pyright

mypy: $(VENV)/.installed-dev
	$(BIN)/mypy

pyright: $(VENV)/.installed-dev
	$(BIN)/pyright

contract: $(VENV)/.installed-dev
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev ## Measure speed beside each engine's bare limit
	$(BIN)/python -m benchmarks

scale: $(VENV)/.installed-dev ## Measure libraries of up to a million chunks (hours; resumes; PRIVATEGPT_SCALE_CORPUS)
	$(BIN)/python -m benchmarks.scale --into docs/scale.md

soak: $(VENV)/.installed-dev ## Load that hurts, then rest: what is answered and what is given back
	$(BIN)/python -m benchmarks.soak

crash: $(VENV)/.installed-dev ## Kill, fill and break at every write, then prove what is left (long)
	$(BIN)/python -m tests.crash

evals: $(VENV)/.installed-dev ## Measure support and answers on ../shared/eval (hours; resumes)
	$(BIN)/python -m evals.support
	$(BIN)/python -m evals.answers --engine bundled
	$(BIN)/python -m evals.answers --engine qwen

evals-retrieval: $(VENV)/.installed-dev ## Measure search on the sets of ../shared/eval (or PRIVATEGPT_EVAL)
	$(BIN)/python -m evals.retrieval

clean: ## Remove .venv and caches; documents in local_data stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage*
