# The target of the drafts of questions; the Makefile of the toolkit includes it.
VAULT ?= demo
override VAULT := $(value VAULT)
export VAULT

.PHONY: drafts
## Draft questions (eval/extras/drafts)
drafts: setup ## draft questions from notes: make drafts VAULT=path/to/notes TO=drafts.jsonl
	$(PY) eval/extras/drafts/generate_cases.py --vault "$$VAULT" --output "$${TO:-drafts.jsonl}" $(ARGS)
