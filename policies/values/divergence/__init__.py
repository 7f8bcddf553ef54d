"""Divergence curves of pages made of fragments, and the utility of a refresh."""
