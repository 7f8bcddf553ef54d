"""Estimates of divergence curves, lifetimes and change counts of fragments."""
