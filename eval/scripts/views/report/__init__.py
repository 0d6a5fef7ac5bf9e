"""The report of one run: one data object, drawn as JSON, Markdown and one HTML page."""
