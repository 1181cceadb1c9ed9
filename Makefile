# Two commands need nothing but Python 3.11, make and a way to install packages:
#   make demo    the main job on bundled data
#   make test    lint, types and all tests
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
# A variable: its comma would end the argument of a call.
PEERS := '.[dev,peers]'
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# A download may fail for a moment: an installation is tried three times before it counts as failed.
define install
	@for try in 1 2 3; do \
		if $(PIP) install $(1); then exit 0; fi; \
		echo "installation failed (try $$try of 3)" >&2; sleep $$((try * 5)); \
	done; exit 1
endef

.PHONY: help test checks lint types check demo bench bench-smoke studies studies-smoke docs clean

help:
	@echo "make demo           the main job on bundled data"
	@echo "make test           lint, types and tests"
	@echo "make checks         scikit-learn's checks with the whole grids of tuned machines"
	@echo "make lint | types   one of them alone"
	@echo "make bench          all benchmarks against the peers that are installed (make peers installs them)"
	@echo "make bench-smoke    the same on tiny data, to see that they run"
	@echo "make studies        tables and figures of the literature"
	@echo "make docs           run every code block of the documentation"
	@echo "make clean          remove the environment, caches and built files"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "mercer needs Python 3.11 or newer: set PYTHON=" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "no virtual environment: install the package python3-venv" >&2; exit 1; }

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(call install,--editable '.[report]')
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(call install,--editable '.[dev]')
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-peers: pyproject.toml $(VENV)/.installed-dev
	$(call install,--editable $(PEERS))
	@touch $@

.PHONY: peers
peers: $(VENV)/.installed-peers

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --durations 15

checks: $(VENV)/.installed-dev
	MERCER_WHOLE_GRIDS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal tests/test_estimator_checks.py

demo: $(VENV)/.installed
	$(BIN)/mercer demo

bench: $(VENV)/.installed-dev
	@for file in benchmarks/*.py; do \
		case $$file in benchmarks/__init__.py|benchmarks/harness.py|benchmarks/peers.py) continue;; esac; \
		$(BIN)/python -m benchmarks.$$(basename $$file .py) || exit 1; done

bench-smoke: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q tests/benchmarks

studies: $(VENV)/.installed-dev
	@for file in studies/[a-z]*.py; do [ -e "$$file" ] || continue; $(BIN)/python $$file || exit 1; done

studies-smoke: $(VENV)/.installed-dev
	@for file in studies/[a-z]*.py; do [ -e "$$file" ] || continue; $(BIN)/python $$file --smoke || exit 1; done

docs: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q tests/test_docs.py tests/test_examples.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
