"""What a person looks at: one case in full, the browser, the report."""
