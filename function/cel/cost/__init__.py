"""What work costs in the units of Kubernetes: charged as a selector runs, estimated before it is stored."""
