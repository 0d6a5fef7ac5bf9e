"""Several runs as one question: grids of settings, races, and when to stop.

An experiment is made of runs like any other: `clients.run` asks, `scorers` score, and what is
better is said by `decisions`, allowing for every look. It keeps no scores of its own beside theirs.
"""
