"""Read a control plane through the Kubernetes client: lists in pages, nothing is ever written.

The client is the extra `live` and takes half a second to import: only `connection.py` imports it, and only
when something is read.
"""
