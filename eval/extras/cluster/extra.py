"""Texts scored by workers of Dask on several machines, with the bytes of one process."""

OPTIONS = {"score_context": "cli:SCORING", "score_groundedness": "cli:SCORING"}
