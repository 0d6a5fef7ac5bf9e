"""Numbers compared with people: the judge, the text metrics, the guardrails, the claim screen."""
