"""Command lines: options, arguments of programs, errors in one line.

Public modules: commands, options.
"""
