"""The example of one's own model: its dynamic programme against all alignments, its losses and its learning."""

import importlib.util
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "alignment.py"


@pytest.fixture(scope="module")
def alignment():
    specification = importlib.util.spec_from_file_location("alignment_example", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def every(x):
    """All alignments of two texts: equally many places of each, matched in their order."""
    n, m = len(x[0]), len(x[1])
    return [
        tuple(zip(first, second, strict=True))
        for size in range(min(n, m) + 1)
        for first in combinations(range(n), size)
        for second in combinations(range(m), size)
    ]


@pytest.mark.parametrize("texts", [("ACGT", "AGT"), ("", "AC"), ("", ""), ("A", "T"), ("GATTA", "TAGAC")])
@pytest.mark.parametrize("seed", range(3))
def test_alignments_are_the_best_of_all(alignment, texts, seed):
    model, random = alignment.Alignment(), np.random.default_rng(seed)
    w = random.standard_normal(model.size())
    structures = every(texts)
    right = structures[random.integers(len(structures))]
    found = model.infer(w, texts)
    assert found in structures
    assert model.score_of(w, texts, found) == pytest.approx(max(model.score_of(w, texts, y) for y in structures))
    found = model.loss_augmented(w, texts, right, "margin").structure
    best = max(model.value(w, texts, right, y, "margin") for y in structures)
    assert model.value(w, texts, right, found, "margin") == pytest.approx(best)


def test_known_alignments_are_alignments(alignment):
    random = np.random.default_rng(0)
    for _ in range(20):
        texts, matches = alignment.related(random, 5)
        assert matches in every(texts)
