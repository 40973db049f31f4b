"""Policy: how a deployment's set of replicas may change at a time, and in which order deployments place."""
