"""The InferenceCluster handler: from what is declared to what the scheduler reads of a cluster.

Read `handler.py` first: it is the table of contents.
"""
