"""The bundled sets have the published sizes, are small, and say where they come from."""

import numpy as np
import pytest

from mercer.data import SAMPLES, sample
from mercer.data.samples import FOLDER
from mercer.errors import InvalidInput

PUBLISHED = {
    "heart-statlog": (270, 13, 2), "iris": (150, 4, 3), "breast-cancer-wisconsin": (683, 9, 2),
    "german-numeric": (1000, 24, 2), "satimage": (6435, 36, 6), "optdigits": (5620, 64, 10),
    "concrete": (1030, 8, None), "yacht": (308, 6, None),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_have_their_published_size(name: str) -> None:
    data = sample(name)
    n, d, classes = PUBLISHED[name]
    assert (data.n, data.d) == (n, d)
    assert data.y is not None
    assert np.isfinite(data.X).all()
    assert (SAMPLES[name].task == "classification") == (classes is not None)
    if classes:
        assert len(np.unique(data.y)) == classes


def test_parts_follow_one_another() -> None:
    train, test, whole = sample("satimage", "train"), sample("satimage", "test"), sample("satimage")
    np.testing.assert_array_equal(whole.X, np.vstack([train.X, test.X]))
    np.testing.assert_array_equal(whole.y, np.concatenate([train.y, test.y]))
    assert (train.n, test.n) == (4435, 2000)


def test_every_file_is_small_and_described() -> None:
    about = (FOLDER / "README.md").read_text()
    for path in FOLDER.glob("*.xz"):
        assert path.stat().st_size < 200_000
    for name in SAMPLES:
        assert f"| {name} |" in about


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(InvalidInput, match="there are heart-statlog, iris"):
        sample("mnist")
    with pytest.raises(InvalidInput, match="has train and test"):
        sample("satimage", "validation")
    with pytest.raises(InvalidInput, match="has no parts"):
        sample("iris", "train")
