"""Labels of several people: a file each, agreement, settling; and the screen in a browser."""

OPTIONS = {"label_eval": "cli:LABEL_EVAL"}
FILES = {"judgements/NAME.jsonl": "agreement"}
LABEL_ACTIONS = {"adjudicate": "actions:ADJUDICATE"}
LABEL_ORDERS = {"disagreement": "agreement:by_disagreement"}
