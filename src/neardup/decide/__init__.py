"""Decide what is kept."""
