"""Which of two runs answers better, by a judge that sees both answers, in both orders."""

OPTIONS = {"calibrate_judge": "cli:CALIBRATE_JUDGE"}
COMPARED = {"pairs": "compared"}
FILES = {"pairs/BASE.jsonl": "record"}
