"""The simulation core: tapes of events, and the one kernel that plays them."""
