"""Shopping offers: prices, clicks and impressions of a market."""
