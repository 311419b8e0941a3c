"""Learner: training with metrics, checkpoints, early stopping and a way back."""

from burnish.learner.checkpoint import KeepBest, KeepLast, keep_all
from burnish.learner.evaluator import Evaluator
from burnish.learner.events import EventStore, FileLogger, MetricLogger, read_events
from burnish.learner.interrupter import Interrupter
from burnish.learner.learner import Learner
from burnish.learner.metric import (
    Accuracy,
    IterationSpeed,
    LearningRate,
    Loss,
    Metric,
    Moment,
)
from burnish.learner.output import StepOutput, Supervised, TrainOutput
from burnish.learner.renderer import LineRenderer, Progress, Renderer, Run
from burnish.learner.stopping import NoImprovement
from burnish.learner.summary import LearnerSummary

__all__ = [
    "Accuracy",
    "Evaluator",
    "EventStore",
    "FileLogger",
    "Interrupter",
    "IterationSpeed",
    "KeepBest",
    "KeepLast",
    "Learner",
    "LearnerSummary",
    "LearningRate",
    "LineRenderer",
    "Loss",
    "Metric",
    "MetricLogger",
    "Moment",
    "NoImprovement",
    "Progress",
    "Renderer",
    "Run",
    "StepOutput",
    "Supervised",
    "TrainOutput",
    "keep_all",
    "read_events",
]
