"""Raw documents become tf-idf points as the formula says, and scikit-learn agrees."""

import io
import tarfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from mercer.data.text import TfIdf, counts, read_documents, vocabulary, without_headers, words
from mercer.errors import InvalidInput

TEXTS = ["The cat sat; the cat ran.", "A dog ran to THE cat", "dogs and cats!", "the end"]


def archive(path, mode="w:xz"):
    with tarfile.open(path, mode) as tar:
        for name, text in {
            "train/sport/2": "From: a\nSubject: b\n\nball game",
            "train/art/1": "From: c\n\npaint",
            "test/art/9": "no header here",
            "README": "not filed under a label",
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("ending, mode", [("tar.xz", "w:xz"), ("tar.gz", "w:gz"), ("tar", "w")])
def test_a_tar_file_and_its_folder_hold_the_same_documents(tmp_path, ending, mode):
    path = archive(tmp_path / f"docs.{ending}", mode)
    packed = read_documents(path)
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path / "open", filter="data")
    unpacked = read_documents(tmp_path / "open")
    assert packed.texts == unpacked.texts
    assert list(packed.labels) == list(unpacked.labels) == ["art", "art", "sport"]
    assert packed.parts == ("test", "train", "train")
    assert packed.names == ("9", "1", "2")
    assert len(packed) == 3


def test_headers_end_at_the_first_empty_line(tmp_path):
    found = read_documents(archive(tmp_path / "docs.tar.xz"), headers=False)
    assert found.texts == ("no header here", "paint", "ball game")
    assert without_headers("a: b\r\n \r\nbody\n\nmore") == "body\n\nmore"


def test_words_are_runs_of_letters():
    assert words("It's 3 o'clock, re-start NOW") == ["it", "clock", "re", "start", "now"]
    assert words("the cat", stop=frozenset({"the"})) == ["cat"]


def test_counts_and_vocabulary_agree_with_scikit_learn():
    known = vocabulary(TEXTS, minimum=2)
    peer = CountVectorizer(token_pattern=r"[a-z]{2,}", min_df=2)
    expected = peer.fit_transform(TEXTS)
    assert list(known) == list(peer.get_feature_names_out())
    np.testing.assert_array_equal(counts(TEXTS, known).toarray(), expected.toarray())


def test_weights_are_the_formula():
    X = np.array([[2.0, 1, 0, 1], [0, 3, 0, 1], [1, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0]])
    # The fourth word is in four of five documents, the third in two.
    weights = TfIdf.learn(sparse.csr_matrix(X))
    found = weights(X).toarray()
    by_hand = np.log1p(X) * np.log(5 / np.array([2, 2, 2, 4]))
    lengths = np.linalg.norm(by_hand, axis=1, keepdims=True)
    np.testing.assert_allclose(found, by_hand / np.where(lengths > 0, lengths, 1))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 1, 0])
    plain = TfIdf.learn(X, logarithm=False, unit=False)(X).toarray()
    np.testing.assert_allclose(plain, X * np.log(5 / np.array([2, 2, 2, 4])))


def test_a_document_without_known_words_is_the_origin_even_when_its_zeros_are_stored():
    X = np.array([[2.0, 0, 1], [1, 1, 0], [0, 3, 1], [0, 0, 0]])
    stored = sparse.csr_matrix((X.ravel(), np.tile(np.arange(3), 4), np.arange(0, 13, 3)), X.shape)
    assert stored.nnz == 12  # the zeros of the last document are entries like any other
    with np.errstate(all="raise"):
        found = TfIdf.learn(stored)(stored).toarray()
    by_hand = np.log1p(X) * np.log(4 / 2)
    by_hand[:3] /= np.linalg.norm(by_hand[:3], axis=1, keepdims=True)
    np.testing.assert_allclose(found, by_hand)


def test_only_training_documents_decide_what_a_word_weighs():
    X = np.array([[1.0, 0, 1], [1, 1, 0], [0, 1, 0]])
    weights = TfIdf.learn(X, minimum=2)
    np.testing.assert_array_equal(weights.columns, [0, 1])  # the third word is in one document only
    np.testing.assert_allclose(weights(X[:1]).toarray(), weights(X).toarray()[:1])


def test_refusals_say_what_is_wrong(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        read_documents(tmp_path / "missing.tar.xz")
    (tmp_path / "broken.tar.xz").write_bytes(b"not a tar file")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_documents(tmp_path / "broken.tar.xz")
    with pytest.raises(InvalidInput, match="limit"):
        read_documents(archive(tmp_path / "docs.tar.xz"), limit=10)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="no document"):
        read_documents(tmp_path / "empty")
    with pytest.raises(InvalidInput, match="minimum"):
        TfIdf.learn(np.eye(3), minimum=2)
    with pytest.raises(InvalidInput, match="negative"):
        TfIdf.learn(-np.eye(3))
    with pytest.raises(InvalidInput, match="columns"):
        TfIdf.learn(np.array([[1.0, 1], [1, 0], [0, 1], [1, 1], [0, 0]]))(np.ones((1, 1)))


def test_the_newsgroups_are_all_there(benchmark_data):
    found = read_documents(benchmark_data / "20news-bydate.tar.xz")
    assert len(found) == 18846
    assert len(set(found.labels)) == 20
    assert sum(part.endswith("train") for part in found.parts) == 11314
