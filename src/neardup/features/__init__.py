"""Describe a document: its tokens and shingles."""
