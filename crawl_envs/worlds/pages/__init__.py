"""Pages that are fresh or stale: changes, signals and requests."""
