"""Learned agents beside every policy."""
