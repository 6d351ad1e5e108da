"""Indexes: what is asked of them again and again, while documents come and go."""
