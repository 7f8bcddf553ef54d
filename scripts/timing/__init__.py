"""Speed: fair turns, what is timed, and the rivals."""
