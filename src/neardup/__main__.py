"""Run the command line by `python -m neardup`."""

from neardup.cli.main import main

main()
