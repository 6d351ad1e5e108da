"""What users call; neardup itself names all of it."""
