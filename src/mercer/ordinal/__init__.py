"""Ordered classes and ranking: one latent function, learnt from pairs or from thresholds."""

from mercer.ordinal import metrics
from mercer.ordinal.boundaries import free_pair_boundaries, rank_boundaries
from mercer.ordinal.proportional_odds import ProportionalOdds
from mercer.ordinal.ranking import RankSVM
from mercer.ordinal.support_vector import OrdinalSVC

__all__ = ["OrdinalSVC", "ProportionalOdds", "RankSVM", "free_pair_boundaries", "metrics", "rank_boundaries"]
