"""Code shared by all commands: options, and errors in one line.

Public modules: commands, options.
"""
