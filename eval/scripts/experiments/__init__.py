"""Several runs as one question: grids of settings, races, and when to stop.

An experiment consists of ordinary runs: `clients.run` asks, `scorers` score, and `decisions` says
which is better, allowing for every look. It keeps no scores of its own."""
