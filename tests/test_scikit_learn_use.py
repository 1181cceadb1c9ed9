"""Every classifier inside the tools people use: labels of any kind, named columns, pickles, calibration, weights."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline

import mercer
from mercer import Gaussian, Nystrom, Standardise

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(60, 3))
FRAME = pd.DataFrame(VALUES, columns=["height", "width", "mass"])
HIGH = VALUES[:, 0] + np.sin(2 * VALUES[:, 1]) > 0
LABELS = {
    "bool": HIGH,
    "text": np.where(HIGH, "high", "low"),
    "object": np.where(HIGH, "high", "low").astype(object),
    "integer": np.where(HIGH, 7, -3),
    "three": np.array(["low", "middle", "high"])[np.digitize(VALUES[:, 0], [-0.5, 0.5])],
}
CLASSIFIERS = [
    mercer.SVC(kernel=Gaussian(sigma="median")),
    mercer.SVC(approximation=Nystrom(20)),
    mercer.NuSVC(nu=0.2),
    mercer.LSSVC(),
    mercer.CrammerSingerSVC(),
    mercer.WestonWatkinsSVC(),
    mercer.LeeLinWahbaSVC(),
    mercer.BredensteinerBennettSVC(),
    mercer.KernelLogistic(),
    mercer.OutputCode(),
    mercer.TunedSVC(n_C=2, n_sigma=2, folds=2),
]
every_classifier = pytest.mark.parametrize("machine", CLASSIFIERS, ids=lambda machine: f"{machine!r:.40}")


@every_classifier
@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_as_they_went_in(machine, kind) -> None:
    y = LABELS[kind]
    fitted = clone(machine).fit(FRAME, pd.Series(y))
    predicted = fitted.predict(FRAME)
    np.testing.assert_array_equal(fitted.classes_, np.unique(y))
    assert predicted.dtype == fitted.classes_.dtype
    assert np.mean(predicted == y) > 0.7
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(FRAME), predicted)


@every_classifier
def test_names_of_columns_are_kept_and_compared(machine) -> None:
    fitted = clone(machine).fit(FRAME, LABELS["text"])
    assert list(fitted.feature_names_in_) == list(FRAME.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(FRAME[["mass", "width", "height"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(VALUES)


@every_classifier
def test_pipelines_held_out_predictions_and_calibration_work(machine) -> None:
    y = LABELS["three"]
    columns = make_column_transformer((Standardise(), ["height", "width"]), remainder="passthrough")
    steps = make_pipeline(columns, clone(machine))
    held_out = cross_val_predict(steps, FRAME, y, cv=3)
    assert np.mean(held_out == y) > 0.4
    calibrated = CalibratedClassifierCV(FrozenEstimator(steps.fit(FRAME, y))).fit(FRAME, y)
    np.testing.assert_allclose(calibrated.predict_proba(FRAME).sum(axis=1), 1.0)


@every_classifier
def test_weights_arrive_by_metadata_routing(machine) -> None:
    y, weights = LABELS["text"], np.where(HIGH, 4.0, 0.5)
    with config_context(enable_metadata_routing=True):
        asking = clone(machine).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        steps = make_pipeline(Standardise(), asking)
        routed = GridSearchCV(steps, {}, cv=2, error_score="raise").fit(FRAME, y, sample_weight=weights)
    Z = Standardise().fit_transform(FRAME)
    by_hand = clone(machine).fit(Z, y, sample_weight=weights)
    np.testing.assert_allclose(routed.decision_function(FRAME), by_hand.decision_function(Z), atol=1e-12)
    assert not np.allclose(by_hand.decision_function(Z), clone(machine).fit(Z, y).decision_function(Z))
