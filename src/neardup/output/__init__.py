"""The last stage: kept, removed and rejected documents."""
