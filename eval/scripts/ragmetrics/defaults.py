"""The cut-offs and slices of metrics, unless the user asks for others."""

KS = (1, 3, 5, 10)
"""Cut-offs that retrieval metrics are reported at unless the user asks for others."""

DIMENSIONS = ("category", "difficulty", "query_type", "tag", "vault", "turn", "standalone")
"""The dimensions by which cases are sliced."""
