"""`python -m mercer` is the `mercer` command."""

from mercer.cli.app import main

main()
