"""Numbers held against people: the judge, the text metrics, the guardrails, the claim screen."""
