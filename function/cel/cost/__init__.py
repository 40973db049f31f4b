"""Costs in the units of Kubernetes: charged while a selector runs, estimated before it is stored."""
