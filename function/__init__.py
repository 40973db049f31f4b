"""The fleet scheduler: places the replicas of a ModelDeployment on a fleet of GPU clusters."""
