"""What developers of the toolkit train and measure on open labelled sets; users need none of it."""
