"""Where the stages run."""
