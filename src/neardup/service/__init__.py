"""The HTTP service: `neardup serve`. Needs the extra `serve`."""
