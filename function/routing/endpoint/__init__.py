"""The ModelEndpoint handler: from a URL to a Service that leads there. Begin with `handler.py`."""
