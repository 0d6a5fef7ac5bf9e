# RAG Eval Toolkit: the scripts in eval/scripts, chained. `make` alone lists the targets.
PYTHON ?= python3
VENV ?= .venv
RUN ?= latest
API ?= demo
K ?= 10
ARGS ?=
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
SCRIPTS := eval/scripts
TORCH := $(shell sed -n 's/^torch==/torch==/p' requirements.txt)
LOCK := .venv-lock/bin/python -m pip --disable-pip-version-check
WANTED := import sys, tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
  print(*(p['dependencies'] if sys.argv[1] == 'run' else p['optional-dependencies']['dev']), sep='\n')
CODE := $(SCRIPTS) tests bench

SCORES := $(addprefix score-,retrieval context groundedness embedding abstention safety pipeline)

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo run score $(SCORES) suite ci label test static check format bench docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' Makefile
	@echo "Variables: API=http://… (the bot), RUN=run id, K=passages, ARGS='more options', PYTHON=python3.12"

setup: $(VENV)/.ready ## make .venv and install the pinned packages (CPU only; once)
setup-dev: $(VENV)/.ready-dev

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; say which with PYTHON=…" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# PyTorch from its own CPU index first: the wheel that PyPI has for Linux carries gigabytes of CUDA.
# Where that index cannot be reached, PyPI's wheel does.
$(VENV)/.ready: requirements.txt | $(VENV)/bin/python
	@echo "Installing the pinned packages into $(VENV): about 290 MB to download, 1.6 GB on disk, a few minutes, once …" >&2
	$(PIP) install --quiet --retries 1 --timeout 15 --no-deps --index-url $(TORCH_CPU_INDEX) $(TORCH) \
	  2>/dev/null || $(PIP) install --quiet $(TORCH)
	$(PIP) install --quiet -r requirements.txt
	@touch $@

$(VENV)/.ready-dev: requirements-dev.txt $(VENV)/.ready
	$(PIP) install --quiet -r requirements-dev.txt
	@touch $@

demo: setup ## ask the embedded bot the 90 questions of eval_set.jsonl, score all perspectives, diagnose
	@set -e; run=$$($(PY) $(SCRIPTS)/run_eval.py --api-url demo --labels --store-full-text --k $(K) \
	    --folder-mode on_with_fallback $(ARGS)); \
	  $(PY) $(SCRIPTS)/score_retrieval.py --run "$$run" --by category --worst 3; echo; \
	  $(PY) $(SCRIPTS)/eval_suite.py --run "$$run"; \
	  echo; echo "Commit this file to remember the run: $$run/metrics.json"

run: setup ## ask your bot: make run API=http://localhost:9000
	$(PY) $(SCRIPTS)/run_eval.py --api-url $(API) --k $(K) $(ARGS)

score: $(SCORES) ## score a run from every perspective: make score RUN=latest (-j works)

$(SCORES): score-%: setup
	$(PY) $(SCRIPTS)/score_$*.py --run $(RUN) $(ARGS)

suite: setup ## all perspectives of a run in one table, with a diagnosis
	$(PY) $(SCRIPTS)/eval_suite.py --run $(RUN) $(ARGS)

ci: setup ## ask the bot a small fixed part of the set; fail when a gate of eval/gates.toml is missed
	$(PY) $(SCRIPTS)/eval_suite.py --api-url $(API) --suite smoke --gates eval/gates.toml $(ARGS)

label: setup ## label gold supports in the terminal (API=demo starts the embedded bot)
	$(PY) $(SCRIPTS)/label_eval.py --api-url $(API) $(ARGS)

test: setup-dev ## run all tests (no network, about 5 minutes on two cores)
	$(PY) -m pytest -q -n auto --dist worksteal $(ARGS)

static: setup-dev ## format, lint, types, import rules, generated documents
	$(VENV)/bin/ruff format --check $(CODE)
	$(VENV)/bin/ruff check $(CODE)
	$(VENV)/bin/mypy
	$(PY) -m pytest -q tests/test_architecture.py
	$(PY) $(SCRIPTS)/make_docs.py --check

check: static test ## everything that must be green before a commit

format: setup-dev ## let ruff format and mend the code
	$(VENV)/bin/ruff format $(CODE)
	$(VENV)/bin/ruff check --fix $(CODE)

docs: setup ## write the generated parts of EVAL.md and docs/ again
	$(PY) $(SCRIPTS)/make_docs.py

bench: setup-dev ## measure speed beside the peers (minutes; prints Markdown tables)
	$(PIP) install --quiet -r bench/requirements.txt
	$(PY) bench/run_all.py $(ARGS)

lock: ## resolve the newest versions and write requirements*.txt anew
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	$(LOCK) install --quiet --retries 1 --timeout 15 --no-deps --index-url $(TORCH_CPU_INDEX) $(TORCH) \
	  2>/dev/null || $(LOCK) install --quiet $(TORCH)
	.venv-lock/bin/python -c "$(WANTED)" run > .venv-lock/run.in && $(LOCK) install --quiet -r .venv-lock/run.in
	$(LOCK) freeze | sed 's/+cpu//' | sort > .venv-lock/run.txt
	.venv-lock/bin/python -c "$(WANTED)" dev > .venv-lock/dev.in && $(LOCK) install --quiet -r .venv-lock/dev.in
	$(LOCK) freeze | sed 's/+cpu//' | sort > .venv-lock/all.txt
	{ sed -n '1p' requirements.txt; cat .venv-lock/run.txt; } > .venv-lock/requirements.txt
	{ sed -n '1p' requirements-dev.txt; comm -13 .venv-lock/run.txt .venv-lock/all.txt; } > requirements-dev.txt
	mv .venv-lock/requirements.txt requirements.txt && rm -rf .venv-lock

clean: ## remove the virtual environment and caches; results stay
	rm -rf $(VENV) eval/cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
