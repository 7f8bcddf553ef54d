"""Command lines that join environments, policies and agents."""
