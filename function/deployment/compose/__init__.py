"""Compose the answer: from a decision to the desired resources, conditions, status and events.

What may leave the desired state is decided by Law 2 in the scheduler; here everything kept is emitted again.
"""
