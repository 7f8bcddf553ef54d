"""Recorded histories of real sites."""
