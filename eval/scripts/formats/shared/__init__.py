"""What the formats share: rows read, places of passages, spans, what goes out."""
