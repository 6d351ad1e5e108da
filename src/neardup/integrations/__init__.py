"""Parts that other programs load: they call the API and decide nothing."""
