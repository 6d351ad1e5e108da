"""Tell: kept, removed and rejected documents, the report."""
