"""The engine that decides on top of an index."""
