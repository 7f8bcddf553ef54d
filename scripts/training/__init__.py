"""What the commands that train, evaluate and tune agents have in common."""
