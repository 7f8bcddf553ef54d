"""From a git repository to a recorded history."""
