"""The ModelService handler: from selected endpoints to one route. Begin with `handler.py`."""
