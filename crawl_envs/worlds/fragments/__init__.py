"""Pages made of fragments that are born and die.

Public modules: lanes, regions, shingling.
"""
