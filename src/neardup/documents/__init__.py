"""Read files, tables and datasets as batches of documents."""
