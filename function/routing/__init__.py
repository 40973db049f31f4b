"""The handlers that lead requests to replicas: ModelEndpoint and ModelService.

An endpoint becomes a Service on the control plane that leads to one replica, a service one HTTPRoute that
spreads the requests for one address over endpoints. `endpoint.py` and `service.py` end with
their handlers; `traffic.py` says which endpoint gets which share.
"""
