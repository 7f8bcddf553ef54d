"""Shopping offers: prices, clicks and impressions of a market.

Public modules: features, lane, lanes, law, log, world.
"""
