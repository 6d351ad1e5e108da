"""The fifth stage: the exact measures of pairs, and the recall of a run."""
