"""The map: the fleet as people picture it, as one HTML page or one SVG picture."""
