"""One module per environment family: its page in the docs, and its wiring."""
