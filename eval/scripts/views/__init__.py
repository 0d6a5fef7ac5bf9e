"""The views that a person reads: one case in full, the browser, the report."""
