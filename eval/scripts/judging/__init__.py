"""The judge: its server, its cache, its prompts, the kinds of calls, and a run of judging."""
