"""Shopping offers: prices, clicks and impressions of a market.

Public modules: features, lanes, law, log.
"""
