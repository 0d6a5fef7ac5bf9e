"""Reading the open labelled sets that the guardrails are measured and trained on."""
