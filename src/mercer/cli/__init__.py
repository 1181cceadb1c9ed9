"""The `mercer` command."""

from mercer.cli.app import main

__all__ = ["main"]
