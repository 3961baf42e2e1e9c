# inferwatch: `make run` and `make test` set up everything they need; `make help` lists the rest.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# What the targets need from the distribution. `.ci/ensure-debs` installs what is missing as root, or says how to.
RUN_DEBS := python3-venv
BPF_DEBS := clang llvm libbpf-dev libbpf1
TEST_DEBS := $(RUN_DEBS) $(BPF_DEBS) clang-format prometheus curl iproute2

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

.PHONY: run
run: $(VENV)/run.stamp $(VENV)/bpf.stamp ## Install what is missing and start the agent; ARGS="--config FILE" and the like are passed on
	@exec $(BIN)/inferwatch run --log.format=console $(ARGS)

.PHONY: test
test: test-debs $(VENV)/dev.stamp $(VENV)/bpf.stamp ## Install what is missing and run the tests; ARGS="-k name" and the like are passed on
	@$(BIN)/pytest $(ARGS)

.PHONY: check
check: $(VENV)/dev.stamp ## Format, lint, types, layers, generated files unchanged
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@sh .ci/ensure-debs clang-format
	$(MAKE) --no-print-directory -C bpf check-format
	@sh .ci/check-generated $(BIN)

.PHONY: generate
generate: $(VENV)/dev.stamp ## Write the generated files again: config.example.toml, tables in the pages, docs indexes
	$(BIN)/inferwatch render config-example -o config.example.toml
	$(BIN)/inferwatch render docs --root .

.PHONY: golden
golden: $(VENV)/dev.stamp ## Write the golden files again; read the difference like code
	INFERWATCH_GOLDEN=1 $(BIN)/pytest -q -k golden
	git diff --stat -- tests/golden

.PHONY: bench
bench: bench-debs $(VENV)/dev.stamp $(VENV)/bpf.stamp ## Measure the agent beside its peers and print a table (a few minutes; run it alone)
	PYTHONPATH=tests $(BIN)/python -m bench.bench $(ARGS)

.PHONY: test-engines
test-engines: $(VENV)/dev.stamp $(VENV)/bpf.stamp ## Build real engines once and run the agent against them (15 minutes the first time)
	$(BIN)/pytest -s tests/engines_lab/lab_*.py $(ARGS)

.PHONY: lock
lock: $(VENV)/dev.stamp ## Write the lock files again after a change of requirements/*.in
	cd requirements && for name in run dev; do \
	  ../$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url \
	    --no-emit-find-links --no-emit-trusted-host --no-emit-options --output-file=$$name.txt $$name.in; done
	! grep -n '://' requirements/*.txt

.PHONY: clean
clean: ## Remove what the targets made, .venv included
	rm -rf $(VENV) build dist daemon/inferwatch/bpf_objects .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# A stamp says that .venv holds what a lock file names; the interpreter's version is part of it.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11; name a newer one: make PYTHON=/path/to/python3.12 ..." >&2; exit 2; }
	@sh .ci/ensure-debs $(RUN_DEBS)
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	touch $@

# The programs are built where the package looks for them; a machine without a compiler does without.
$(VENV)/bpf.stamp: $(wildcard bpf/*.c bpf/*.h) bpf/Makefile | $(VENV)/bin/python
	@sh .ci/build-bpf $@

.PHONY: test-debs bench-debs
test-debs:
	@sh .ci/ensure-debs $(TEST_DEBS)
bench-debs:
	@sh .ci/ensure-debs $(TEST_DEBS) prometheus-node-exporter prometheus-process-exporter
