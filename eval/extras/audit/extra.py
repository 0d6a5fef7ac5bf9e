"""What is wrong with the documents: moved labels, near doubles, stale passages, contradictions."""
