"""The table of a search in a model file: every candidate with its scores, and the grid it was taken from."""

from dataclasses import asdict

import numpy as np

from mercer.errors import ModelFileError
from mercer.models.fields import Draft, Stored, decode, encode
from mercer.selection.grid import Grid
from mercer.selection.result import SearchResult

PARAMETERS = ("C", "sigma", "epsilon")
OUTCOMES = ("done", "stopped early", "dropped", "not reached")


def encode_search(draft: Draft, result: SearchResult, grid: Grid) -> None:
    """Store the candidates (m, parameters), their scores (m, folds), what they cost, and the grid."""
    names = list(result.candidates[0])
    draft.facts["parameters"], draft.facts["status"] = names, list(result.status)
    draft.facts["stopped"], draft.facts["resumed"] = result.stopped, int(result.resumed)
    draft.facts["seconds"] = encode(float(result.total_seconds), "seconds")
    draft.facts["facts"] = encode(result.facts, "facts")
    draft.facts["grid"] = {name: list(values) for name, values in asdict(grid).items()}
    draft.tensor("candidates", np.array([[c[name] for name in names] for c in result.candidates], dtype=np.float64))
    for name in ("scores", "support", "seconds"):
        draft.tensor(name, getattr(result, name))
    draft.tensor("points", result.points.astype(np.int64))


def decode_search(stored: Stored) -> tuple[SearchResult, Grid]:
    """The table and the grid."""
    names, status = stored.entries("parameters"), stored.entries("status")
    if "C" not in names or not all(name in PARAMETERS for name in names) or len(set(names)) < len(names):
        raise ModelFileError(f"{names!r:.60} are not the parameters of a search")
    m = len(status)
    if m == 0 or not all(item in OUTCOMES for item in status):
        raise ModelFileError("its candidates have an end that is not known")
    values = stored.tensor("candidates", np.float64, (m, len(names)))
    scores = stored.tensor("scores", np.float64, (m, None), finite=False)
    if scores.shape[1] == 0:
        raise ModelFileError("its candidates have no scores")
    facts = decode(stored.fact("facts"))
    if not isinstance(facts, dict):
        raise ModelFileError("the facts of its search are no JSON object")
    result = SearchResult(
        tuple(dict(zip(names, line)) for line in values.tolist()),
        scores,
        stored.tensor("support", np.float64, (m,), finite=False),
        stored.tensor("seconds", np.float64, (m,), finite=False),
        stored.tensor("points", np.int64, (m,)).astype(np.intp),
        tuple(status),
        stored.text("stopped"),
        stored.number("seconds"),
        stored.count("resumed"),
        facts,
    )
    tried = stored.part("grid")
    grid = Grid(*(tuple(map(float, tried.entries(name))) for name in PARAMETERS))
    return result, grid
