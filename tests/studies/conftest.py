"""Studies import what they share from their own folder, as they do when they are run."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder_of_studies(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "studies"), *sys.path])
