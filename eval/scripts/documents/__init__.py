"""A vault of Markdown, text, HTML and PDF as sections; a reader for each kind of file."""
