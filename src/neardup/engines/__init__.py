"""The engines, which run the stages."""
