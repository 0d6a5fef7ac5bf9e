"""The embedded bot: vault, chunks, index, answers, HTTP."""
