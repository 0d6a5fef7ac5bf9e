"""Which of two runs answers better, by a judge that sees both answers; panels of judges."""

OPTIONS = {"calibrate_judge": "cli:CALIBRATE_JUDGE"}
COMPARED = {"pairs": "compared"}
JUDGES = {"panel": "panel"}
FILES = {"pairs/BASE.jsonl": "record"}
