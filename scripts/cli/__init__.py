"""What all commands share: options, and errors in one line.

Public modules: commands, options.
"""
