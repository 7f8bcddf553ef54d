"""Estimates of signal quality."""
