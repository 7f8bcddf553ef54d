"""Commands that combine environments, policies and agents."""
