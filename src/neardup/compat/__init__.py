"""Faces of well-known libraries, to be imported in their place."""
