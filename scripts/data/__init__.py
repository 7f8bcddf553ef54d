"""Commands that make data: recorded histories, URL tables."""
