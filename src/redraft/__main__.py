"""`python -m redraft` is the `redraft` command."""

from redraft.cli.app import main

main()
