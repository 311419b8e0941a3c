"""Metrics of reinforcement learning: rewards, lengths and exploration of episodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.learner.metric.base import Metric, Moment, Statistics, array, ratio


class _Attribute(Metric):
    """The mean of numbers that an item holds, one for each episode that ended."""

    attribute = ""

    def statistics(self, item: Any, moment: Moment) -> Statistics:
        numbers = np.atleast_1d(array(getattr(item, self.attribute)))
        return {"sum": float(numbers.sum()), "count": numbers.size}

    def value(self, statistics: Statistics) -> float:
        return ratio(statistics["sum"], statistics["count"])


class CumulativeReward(_Attribute):
    """Rewards of a whole episode: `item.cumulative_reward`."""

    attribute = "cumulative_reward"


class EpisodeLength(_Attribute):
    """Steps of a whole episode: `item.episode_length`."""

    attribute = "episode_length"
    unit = "steps"


class ExplorationRate(_Attribute):
    """The share of actions taken at random: `item.exploration_rate`."""

    attribute = "exploration_rate"
    higher_is_better = None
