"""Models of claim support: a model from a hub decides about claims instead of the word features."""

OPTIONS = {"score_groundedness": "cli:DECIDES", "eval_suite": "cli:DECIDES"}
