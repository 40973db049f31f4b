"""Selectors: the CEL of a deployment, compiled once, and what it says of clusters, pools and devices."""
