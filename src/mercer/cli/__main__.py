"""`python -m mercer.cli` is the `mercer` command."""

from mercer.cli.app import main

main()
