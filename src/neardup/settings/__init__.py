"""The settings of methods and runs: frozen values, validated on construction; their constraints and
presets.
"""
