# The target of watching production; the Makefile of the toolkit includes it.
.PHONY: watch
## Watch production (eval/extras/watch)
watch: setup ## production through its traces: make watch FROM=traces ARGS="--reference 2026-03-02..2026-04-26"
	$(PY) eval/extras/watch/watch_traces.py $$FROM $(ARGS)
