"""Traces of LLM applications: any source's spans, read by one set of rules."""
