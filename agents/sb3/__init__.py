"""Training and loading agents of Stable-Baselines3."""
