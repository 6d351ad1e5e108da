"""Documents: batches of them, their texts and payloads, the pages they are extracted from."""
