"""The fourth stage: the pairs of documents that may be duplicates."""
