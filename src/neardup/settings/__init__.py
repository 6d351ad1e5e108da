"""The settings of methods and runs: frozen values, validated when made, with their presets and limits."""
