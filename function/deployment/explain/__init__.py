"""Explain a decision: render what the scheduler recorded. Nothing is decided here."""
