"""Composition: from a decision to what is desired.

What may leave the desired state is decided by Law 2 in the scheduler; here everything kept is emitted again.
"""
