"""From a checked tree to closures that run on a frame; begin with `generator`."""
