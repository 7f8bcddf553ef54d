"""What the experiments share: entrants and their plays, curves of cost, snapshots, sites, pictures.

Public modules: curves, divergence, entrants, lifetimes, pictures, plays, sites, snapshots,
two_pages.
"""
