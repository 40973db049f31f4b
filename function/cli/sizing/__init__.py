"""Sizing: how much memory a model needs, from its published configuration. Estimates, all of them.

The formulas stand in docs/sizing.md, with a table against published figures.
"""
