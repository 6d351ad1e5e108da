"""What a run reads: input files, columns, labels."""
