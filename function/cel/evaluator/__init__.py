"""From a checked tree to closures that run on a frame, and the subjects they run on."""
