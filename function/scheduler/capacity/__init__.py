"""Capacity: what every pool has left, in nodes or in devices, and who holds the rest."""
