"""Files of the labelling tool: the set, the journal, judgements, the lock, and fetched chunks."""
