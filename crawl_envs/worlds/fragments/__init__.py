"""Pages made of fragments that are born and die."""
