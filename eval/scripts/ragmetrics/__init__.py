"""Numbers of retrieval and answers from plain values: no file, network, clock or chance."""
