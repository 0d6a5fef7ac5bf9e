"""The embedded bot (vault, chunks, index, answers, HTTP), and drafts of questions from a vault."""
