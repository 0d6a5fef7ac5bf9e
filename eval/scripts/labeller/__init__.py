"""Labelling gold supports: the session and its marks, the files, the screen and the plain mode."""
