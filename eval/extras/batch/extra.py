"""Judging at half the price: the missing requests go to a provider as batch files."""

OPTIONS = {"judge_answers": "cli:JUDGE_ANSWERS", "judge_pairs": "cli:JUDGE_PAIRS"}
