"""The ModelDeployment handler: from a request to the desired ModelReplicas and ModelEndpoints.

Read `handler.py` first: it is the table of contents.
"""
