"""Learnable agents; the only place of torch and Stable-Baselines3."""
