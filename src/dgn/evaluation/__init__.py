"""How good is it?"""

from dgn.evaluation.scores import Scores, scores_at

__all__ = ["Scores", "scores_at"]
