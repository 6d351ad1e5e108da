"""The sixth stage: which documents are kept, and the clusters of the others."""
