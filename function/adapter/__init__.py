"""The ModelAdapter handler: which replicas of a base an adapter is on, and the way to it there."""
