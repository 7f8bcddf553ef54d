"""The simulation core: tapes of events, and the one kernel that plays them.

Public modules: advance, clock, law, penalties, state, streams, tape, workload, world.
"""
