"""The simulation core: tapes of events, and the one kernel that plays them.

Public modules: advance, clock, divergence, law, state, streams, tape, versions, world.
"""
