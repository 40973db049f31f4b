"""The scheduler: from a fleet to a decision, by the rules of placement and nothing else.

README.md has the diagram, the vocabulary and the order of reading.

Laws of this room:
- a pure function of its arguments: no clock, no randomness, no I/O;
- doubt never removes a running replica;
- a budget is counted in steps, never in seconds.
"""
