"""Compares the judge, the text metrics and the guardrails with people; the screen labels claims."""
