"""Sets of URLs after published statistics, or read from a file."""
