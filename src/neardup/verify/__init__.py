"""Confirm pairs: exact similarity of shingle sets."""
