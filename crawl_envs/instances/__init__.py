"""Where instances come from: the generators of the papers, and recorded data."""
