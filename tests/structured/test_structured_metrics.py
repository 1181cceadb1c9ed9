"""Chunks are counted as the shared tasks of CoNLL count them."""

import pytest

from mercer.errors import InvalidInput
from mercer.structured.metrics import chunk_scores, chunks


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-NP I-NP O B-VP", [(0, 2, "NP"), (3, 4, "VP")]),
        ("B-NP B-NP", [(0, 1, "NP"), (1, 2, "NP")]),
        ("I-NP I-NP O I-NP", [(0, 2, "NP"), (3, 4, "NP")]),
        ("B-NP I-VP I-VP", [(0, 1, "NP"), (1, 3, "VP")]),
        ("I-NP B-NP I-NP", [(0, 1, "NP"), (1, 3, "NP")]),
    ],
)
def test_chunks_begin_and_end_where_conlleval_says(labels, expected):
    assert chunks(labels.split()) == expected


def test_scores_by_hand():
    Y = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP"]]
    Z = [["B-NP", "I-NP", "B-PP", "B-NP"], ["B-NP"]]
    found = chunk_scores(Y, Z)  # three chunks are right to be found, four were stated, two of them rightly
    assert found == pytest.approx((2 / 4, 2 / 3, 2 * 0.5 * (2 / 3) / (0.5 + 2 / 3)))
    assert chunk_scores([["O"]], [["O"]]) == (0.0, 0.0, 0.0)


def test_labels_that_are_none_and_lengths_that_differ_are_clear_errors():
    with pytest.raises(InvalidInput, match="'X-NP' is no label of a chunk"):
        chunks(["X-NP"])
    with pytest.raises(InvalidInput, match="'O-NP'"):
        chunks(["O-NP"])
    with pytest.raises(InvalidInput, match="sequence 0 has 1 labels in Y and 2 in Z"):
        chunk_scores([["O"]], [["O", "O"]])
