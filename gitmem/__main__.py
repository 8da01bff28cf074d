"""`python -m gitmem`: the command line."""

from gitmem.cli.main import main

main()
