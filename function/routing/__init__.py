"""The handlers that lead requests to replicas: ModelEndpoint and ModelService.

An endpoint becomes a Service on the control plane that leads to one replica (`endpoint.py`). A service
becomes one HTTPRoute that spreads the requests for one address over endpoints (`service.py`). `traffic.py`
decides which endpoint gets which share.
"""
