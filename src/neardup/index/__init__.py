"""Indexes in memory: queries for similar documents while documents are added and removed."""
