"""Did it get better? Comparisons, gates, the history, the diagnosis, and the words for them."""
