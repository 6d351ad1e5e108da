"""Summarise a document: its MinHash signature."""
