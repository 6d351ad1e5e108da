"""Propose pairs: bands of signatures."""
