"""The screens of browse_runs.py. They read no file."""
