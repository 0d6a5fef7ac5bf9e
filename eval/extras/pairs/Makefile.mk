# The target of pairs of answers; the Makefile of the toolkit includes it.
.PHONY: pairs
## Compare answers in pairs (eval/extras/pairs)
pairs: setup ## which of two runs answers better, by a judge: make pairs RUN=new BASE=old JUDGE=gpt4o
	$(PY) eval/extras/pairs/judge_pairs.py --run "$$RUN" --base "$$BASE" --judge "$$JUDGE" $${MODEL:+--model "$$MODEL"} $(ARGS)
