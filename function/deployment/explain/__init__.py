"""Explanation: renders what the scheduler recorded. It decides nothing and records nothing of its own."""
