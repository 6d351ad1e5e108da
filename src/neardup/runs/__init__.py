"""The parts of a run before and between the stages: inputs, columns, labels, scratch files."""
