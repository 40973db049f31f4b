"""Worlds: files read as a control plane would hold them, the requests it would send, and what follows."""
