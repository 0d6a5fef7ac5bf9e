"""The files of a set and of a run: one module for the type, the reader and the writer of each."""
