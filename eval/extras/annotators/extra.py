"""A second opinion: other people's labels, how far they agree, settling them; and a browser."""

OPTIONS = {"label_eval": "cli:LABEL_EVAL"}
FILES = {"judgements/NAME.jsonl": "agreement"}
LABEL_ACTIONS = {"adjudicate": "actions:ADJUDICATE"}
LABEL_ORDERS = {"disagreement": "agreement:by_disagreement"}
