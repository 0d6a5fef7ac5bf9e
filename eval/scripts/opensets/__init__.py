"""Open labelled sets for the guardrails: reading them, and measuring the guardrails on them."""
