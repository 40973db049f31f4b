"""Policy: how many replicas may be out of service at a time, and which are given up as lost."""
