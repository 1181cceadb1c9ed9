"""A file read in blocks holds the points of the file read at once."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.data import Dataset, read, read_blocks, write
from mercer.errors import InvalidInput


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def joined(blocks):
    blocks = list(blocks)
    return np.concatenate([dense(block.X) for block in blocks]), np.concatenate([block.y for block in blocks]), blocks


@pytest.mark.parametrize("ending", ["svm", "svm.gz", "csv", "csv.xz"])
@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_blocks_one_after_the_other_are_the_file(tmp_path, ending, zeros):
    random = np.random.default_rng(0)
    X = np.where(random.random((700, 5)) < zeros, 0.0, random.standard_normal((700, 5)))
    X[0] = 1.0
    y = random.integers(0, 3, 700)
    file = tmp_path / f"a.{ending}"
    write(file, Dataset(X, y))
    found, labels, blocks = joined(read_blocks(file, rows=100, size=4096))
    whole = read(file)
    assert len(blocks) >= 3
    np.testing.assert_array_equal(found, dense(whole.X))
    np.testing.assert_array_equal(labels, whole.y)
    assert len({sp.issparse(block.X) for block in blocks}) == 1
    np.testing.assert_array_equal(np.concatenate([block.origin.places for block in blocks]), whole.origin.places)


def test_categories_are_those_of_the_first_block(tmp_path):
    file = tmp_path / "a.csv"
    rows = [("red" if i % 3 else "blue", i % 7, "yes" if i % 2 else "no") for i in range(300)]
    file.write_text("colour,size,class\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    found, labels, _ = joined(read_blocks(file, rows=50))
    whole = read(file)
    np.testing.assert_array_equal(found, dense(whole.X))
    np.testing.assert_array_equal(labels, whole.y)


def test_a_feature_beyond_those_of_the_first_block_is_refused(tmp_path):
    file = tmp_path / "a.svm"
    file.write_text("1 1:0.5 2:1\n-1 1:0.25\n" * 200 + "1 3:1\n")
    with pytest.raises(InvalidInput, match="3 features, more than the 2"):
        list(read_blocks(file, size=4096))


def test_other_formats_and_empty_files(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(InvalidInput, match="not read in blocks"):
        read_blocks(tmp_path / "a.npy")
    (tmp_path / "b.svm").write_text("# nothing\n")
    assert list(read_blocks(tmp_path / "b.svm")) == []
