"""Metrics of a run."""

from burnish.learner.metric.base import Mean, Metric, Moment, Statistics
from burnish.learner.metric.classification import Accuracy
from burnish.learner.metric.run import IterationSpeed, LearningRate, Loss

__all__ = [
    "Accuracy",
    "IterationSpeed",
    "LearningRate",
    "Loss",
    "Mean",
    "Metric",
    "Moment",
    "Statistics",
]
