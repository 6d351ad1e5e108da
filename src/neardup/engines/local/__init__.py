"""The run on one machine: threads and scratch files."""
