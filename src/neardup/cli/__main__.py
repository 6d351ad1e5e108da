"""Run the command line by `python -m neardup.cli`."""

from neardup.cli.main import main

main()
