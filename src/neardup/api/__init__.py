"""The public functions and classes, which `neardup` exports."""
