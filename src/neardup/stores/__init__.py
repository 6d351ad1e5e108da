"""Stores of an index: rows of documents, found by their ids, their content and their keys."""
