"""Matching: which pools and devices satisfy the device requests of a replica, capacity aside."""
