"""One module per figure or table of a paper, as data."""
