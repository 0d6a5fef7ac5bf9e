"""What browse_runs.py reads: run folders as they are, growing ones too. It writes nothing."""
