"""Screens that show runs and their cases: what browse_runs.py draws. Reads no file."""
