"""One agent for every family of pages: beliefs corrected by what crawls find, and formulas.

Nothing here needs torch.

Public modules: curve_training, curves, policy, prior, stored, training, worlds.
"""
