"""Several runs as one question: grids of settings, races, and when to stop. Only the rule so far.

An experiment is made of runs like any other: `clients.run` asks, `scorers` score, and what is
better is what `decisions.compare` says, corrected for all the runs that were compared. It keeps no
numbers of its own beside the runs' metrics.json.
"""
