"""The handlers that lead requests to replicas: ModelEndpoint and ModelService.

An endpoint becomes a Service on the control plane that leads to one replica, a service one HTTPRoute that
spreads the requests for one address over endpoints. Read `endpoint/handler.py` and `service/handler.py`
first: they are the tables of contents.
"""
