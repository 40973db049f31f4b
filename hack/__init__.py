"""Scripts for people who work on this project."""
