"""Actions, observations and rewards."""
