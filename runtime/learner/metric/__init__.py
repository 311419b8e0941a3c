"""Metrics: of outputs against targets, of the run, of the machine."""

from burnish.learner.metric.base import Compared, Mean, Metric, Moment, Statistics
from burnish.learner.metric.classification import (
    Accuracy,
    ConfusionStats,
    FBetaScore,
    HammingScore,
    Precision,
    Recall,
    TopKAccuracy,
)
from burnish.learner.metric.curves import AUCPR, AUROC
from burnish.learner.metric.features import DISTS, FID, LPIPS
from burnish.learner.metric.image import MSSSIM, PSNR, SSIM, Dice
from burnish.learner.metric.reinforcement import (
    CumulativeReward,
    EpisodeLength,
    ExplorationRate,
)
from burnish.learner.metric.run import IterationSpeed, LearningRate, Loss
from burnish.learner.metric.system import (
    CpuMemory,
    CpuTemperature,
    CpuUse,
    GpuMemory,
    GpuTemperature,
    GpuUse,
)
from burnish.learner.metric.text import BLEU, CER, ROUGEL, WER, Perplexity

__all__ = [
    "AUCPR",
    "AUROC",
    "BLEU",
    "CER",
    "DISTS",
    "FID",
    "LPIPS",
    "MSSSIM",
    "PSNR",
    "ROUGEL",
    "SSIM",
    "WER",
    "Accuracy",
    "Compared",
    "ConfusionStats",
    "CpuMemory",
    "CpuTemperature",
    "CpuUse",
    "CumulativeReward",
    "Dice",
    "EpisodeLength",
    "ExplorationRate",
    "FBetaScore",
    "GpuMemory",
    "GpuTemperature",
    "GpuUse",
    "HammingScore",
    "IterationSpeed",
    "LearningRate",
    "Loss",
    "Mean",
    "Metric",
    "Moment",
    "Perplexity",
    "Precision",
    "Recall",
    "Statistics",
    "TopKAccuracy",
]
