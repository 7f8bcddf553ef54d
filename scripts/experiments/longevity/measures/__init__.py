"""Functions of several experiments: policies and their episodes, curves, snapshots, pictures.

Public modules: curves, divergence, entrants, lifetimes, pictures, plays, sites, snapshots,
two_pages.
"""
