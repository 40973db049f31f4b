"""The static check of a tree: names, types and overloads; and what a checked selector reads and compares."""
