"""File formats: the registry, and for each format its reader and writer."""
