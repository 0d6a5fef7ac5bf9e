# The target of races of settings; the Makefile of the toolkit includes it.
.PHONY: sweep
## Race settings (eval/extras/sweep)
sweep: setup ## a grid of settings as a race: make sweep GRID=grid.toml API=http://localhost:9000
	$(PY) eval/extras/sweep/sweep_runs.py $${GRID:+"$$GRID"} --api-url "$$API" $(ARGS)
