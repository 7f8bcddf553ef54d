"""Environments in which a tracker decides which page to crawl next."""
