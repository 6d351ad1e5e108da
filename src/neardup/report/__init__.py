"""The reports: their contents, and their HTML pages."""
