"""The screen on which people label judged claims; it knows no file and no judge."""
