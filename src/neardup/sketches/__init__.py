"""Indexes in memory of signatures and fingerprints: queries while documents are added and
removed.
"""
