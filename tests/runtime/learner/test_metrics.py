"""Metrics: values worked out by hand, and the same value however batches are cut."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish import Tensor
from burnish.errors import InputError
from burnish.learner import StepOutput
from burnish.learner import metric as m
from burnish.learner.metric.text import common_length, edit_distance
from burnish.learner.tracker import Tracker

RNG = np.random.default_rng(7)
MOMENT = m.Moment("valid", 1, 1, 0.1, 0.5, 4)


def value(metric, output, targets):
    item = StepOutput(None, np.asarray(output), np.asarray(targets))
    return metric.value(metric.statistics(item, MOMENT))


SCORES = [[0.1, 0.7, 0.2], [0.5, 0.4, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
TARGETS = [1, 1, 2, 1]
LABELS = ([[0.9, 0.2], [0.6, 0.8], [0.1, 0.4]], [[1, 0], [0, 1], [1, 0]])

BY_HAND = [
    (m.Accuracy(), SCORES, TARGETS, 50),
    (m.Accuracy(pad=2), SCORES, TARGETS, 100 / 3),
    (m.TopKAccuracy(2), SCORES, TARGETS, 100),
    (m.TopKAccuracy(5), SCORES, TARGETS, 100),
    (m.Precision(), SCORES, TARGETS, 50),
    (m.Recall(average="macro"), SCORES, TARGETS, 100 * (0 + 1 / 3 + 1) / 3),
    (m.Precision(average="macro"), SCORES, TARGETS, 100 * (0 + 1 + 1) / 3),
    (m.Precision("binary"), [0.9, 0.8, 0.2], [1, 0, 1], 50),
    (m.Recall("binary", threshold=0.1), [0.9, 0.8, 0.2], [1, 0, 1], 100),
    (m.FBetaScore("multilabel"), *LABELS, 100 * 2 * 2 / (3 + 3)),
    (m.HammingScore(), *LABELS, 100 * 4 / 6),
    (m.AUROC(), [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 75),
    (m.AUROC(), [0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1], 50),
    (m.AUCPR(), [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 100 * (1 / 2 + (2 / 3) / 2)),
    (m.Perplexity(), np.zeros((2, 3, 8)), np.zeros((2, 3), int), 8),
    (m.CER(pad=0), [[1, 2, 3, 0]], [[1, 3, 3, 4]], 50),
    (m.WER(space=0), [[1, 2, 0, 3]], [[1, 2, 0, 4]], 50),
    (m.CER(end=9), [[1, 2, 9, 5]], [[1, 2, 9, 9]], 0),
    (m.BLEU(n=2), [[1, 2, 3]], [[1, 2, 4]], 100 * math.sqrt(2 / 3 * 1 / 2)),
    (m.BLEU(n=1), [[1, 2]], [[1, 2, 3, 4]], 100 * math.exp(1 - 4 / 2)),
    (m.BLEU(n=2), [[1, 2]], [[2, 1]], 0),
    (m.BLEU(n=2, smooth=True), [[1, 2]], [[2, 1]], 100 * math.sqrt(1 / 2)),
    (m.ROUGEL(), [[1, 2, 3]], [[1, 3, 5]], 100 * 2 / 3),
    (m.Dice(), [[0.9, 0.1, 0.8]], [[1, 1, 0]], 50),
    (m.PSNR(), np.zeros((1, 1, 2, 2)), np.full((1, 1, 2, 2), 0.1), 20),
    (m.SSIM(), np.ones((1, 1, 12, 12)), np.ones((1, 1, 12, 12)), 1),
]


@pytest.mark.parametrize(("metric", "output", "targets", "expected"), BY_HAND)
def test_by_hand(metric, output, targets, expected):
    assert value(metric, output, targets) == pytest.approx(expected)


def test_scores_of_tokens_are_tokens():
    scores = np.eye(4)[[[1, 2, 3]]]
    assert value(m.CER(), scores, [[1, 2, 2]]) == pytest.approx(100 / 3)


CUT = [
    (m.Accuracy(), (24, 5), 5),
    (m.Precision(average="macro"), (24, 5), 5),
    (m.AUROC(), (24, 5), 5),
    (m.AUCPR(), (24,), 2),
    (m.Perplexity(), (24, 5), 5),
]


@pytest.mark.parametrize(("metric", "shape", "classes"), CUT)
@pytest.mark.parametrize("size", [5, 24])
def test_a_value_does_not_depend_on_the_batches(metric, shape, classes, size):
    output, targets = RNG.standard_normal(shape), RNG.integers(0, classes, 24)
    tracker = Tracker([metric], "valid")
    for i in range(0, 24, size):
        item = StepOutput(None, Tensor(output[i : i + size]), targets[i : i + size])
        tracker.add([tracker.measure(item, MOMENT)])
    resumed = Tracker([metric], "valid")
    resumed.load_state_dict(tracker.state_dict())
    expected = pytest.approx(value(metric, output, targets))
    assert tracker.values()[metric.name] == expected
    assert resumed.values()[metric.name] == expected


@given(*[st.lists(st.integers(0, 3), max_size=9)] * 2)
def test_distances_of_rows(a, b):
    def edits(i, j):
        if not (i and j):
            return i + j
        replaced = edits(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        return min(replaced, edits(i - 1, j) + 1, edits(i, j - 1) + 1)

    def common(i, j):
        if not (i and j):
            return 0
        if a[i - 1] == b[j - 1]:
            return common(i - 1, j - 1) + 1
        return max(common(i - 1, j), common(i, j - 1))

    a, b = a[:6], b[:6]
    assert edit_distance(np.array(a, int), np.array(b, int)) == edits(len(a), len(b))
    assert common_length(np.array(a, int), np.array(b, int)) == common(len(a), len(b))


def test_distances_of_features():
    images = RNG.random((6, 3, 16, 16))
    noisy = images + 0.1 * RNG.standard_normal(images.shape)

    def maps(x):
        return [x, x[:, :, ::2, ::2] * 2]

    def vectors(x):
        return x.reshape(x.shape[0], -1)[:, :4]

    for metric in (m.LPIPS(maps), m.DISTS(maps), m.FID(vectors)):
        assert value(metric, images, images) == pytest.approx(0, abs=1e-6)
        assert value(metric, noisy, images) > 1e-3
    # one dimension: (difference of means)^2 + (difference of deviations)^2
    a, b = (
        RNG.standard_normal((50, 1, 1, 1)),
        3 + 2 * RNG.standard_normal((50, 1, 1, 1)),
    )
    expected = (a.mean() - b.mean()) ** 2 + (a.std(ddof=1) - b.std(ddof=1)) ** 2
    flat = m.FID(lambda x: x.reshape(x.shape[0], -1))
    assert value(flat, a, b) == pytest.approx(expected)


def test_smaller_images_are_alike_at_all_sizes():
    a = RNG.random((2, 1, 176, 176))
    assert value(m.MSSSIM(), a, a) == pytest.approx(1)
    assert 0 < value(m.MSSSIM(), a + 0.1 * RNG.random(a.shape), a) < 1


def test_the_runs_own():
    item = SimpleNamespace(loss=Tensor(2.0), cumulative_reward=[1.0, 3.0])
    assert m.Loss().value(m.Loss().statistics(item, MOMENT)) == 2
    assert m.LearningRate().value(m.LearningRate().statistics(item, MOMENT)) == 0.1
    assert m.IterationSpeed().value(m.IterationSpeed().statistics(item, MOMENT)) == 2
    reward = m.CumulativeReward()
    assert reward.value(reward.statistics(item, MOMENT)) == 2


class Sensors:
    """A machine with one sensor and one GPU that does not answer."""

    class NVMLError(Exception):
        pass

    NVML_TEMPERATURE_GPU = 0

    def cpu_percent(self, interval):
        return 12.5

    def virtual_memory(self):
        return SimpleNamespace(used=3 * 2**30)

    def sensors_temperatures(self):
        return {"k10temp": [SimpleNamespace(current=40), SimpleNamespace(current=50)]}

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByIndex(self, index):
        if index:
            raise self.NVMLError
        return index

    def nvmlDeviceGetUtilizationRates(self, device):
        return SimpleNamespace(gpu=80)

    def nvmlDeviceGetMemoryInfo(self, device):
        return SimpleNamespace(used=2**30)

    def nvmlDeviceGetTemperature(self, device, sensor):
        return 60


READINGS = [
    (m.CpuUse(), 12.5),
    (m.CpuMemory(), 3),
    (m.CpuTemperature(), 45),
    (m.GpuUse(), 80),
    (m.GpuMemory(), 1),
    (m.GpuTemperature(), 60),
    (m.GpuTemperature(1), float("nan")),
]


@pytest.mark.parametrize(("metric", "expected"), READINGS)
def test_readings(metric, expected, monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", Sensors())
    monkeypatch.setitem(sys.modules, "pynvml", Sensors())
    found = metric.value(metric.statistics(None, MOMENT))
    assert found == pytest.approx(expected, nan_ok=True)


def test_a_missing_library_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(InputError, match=r"psutil: pip install 'burnish\[train\]'"):
        m.CpuUse().statistics(None, MOMENT)


WRONG = [
    (m.Accuracy(), (4, 3), (3,), r"Accuracy: expected output \(\.\.\., classes\)"),
    (m.Precision(), (4, 3, 1), (4,), "Precision: expected output"),
    (m.HammingScore(), (4, 3), (4,), "of one shape"),
    (m.AUROC(), (4, 3), (5,), "AUROC: expected"),
    (m.CER(), (4,), (4,), "CER: expected"),
    (m.SSIM(), (1, 1, 8, 8), (1, 1, 8, 8), "at least 11 x 11 pixels, got 8 x 8"),
]


@pytest.mark.parametrize(("metric", "output", "targets", "message"), WRONG)
def test_shapes_that_do_not_fit(metric, output, targets, message):
    with pytest.raises(InputError, match=message):
        value(metric, np.zeros(output), np.zeros(targets, int))


def test_kinds_that_are_none():
    with pytest.raises(InputError, match="expected 'multiclass'"):
        m.Recall("both")
    with pytest.raises(InputError, match="'micro' or 'macro'"):
        m.Recall(average="all")


def test_names_tell_settings_apart():
    names = {
        "Precision": m.Precision(),
        "Precision (macro)": m.Precision(average="macro"),
        "F2-Score": m.FBetaScore(beta=2),
        "Top-3 Accuracy": m.TopKAccuracy(3),
        "Iteration Speed": m.IterationSpeed(),
        "Cpu Use": m.CpuUse(),
        "Gpu Use 1": m.GpuUse(1),
        "ROUGE-L": m.ROUGEL(),
    }
    assert [metric.name for metric in names.values()] == list(names)
    with pytest.raises(InputError, match="different names"):
        Tracker([m.TopKAccuracy(2), m.TopKAccuracy(2)], "train")


def test_items_of_other_names():
    metric = m.Accuracy(adapt=lambda item: (item["logits"], item["labels"]))
    item = {"logits": np.asarray(SCORES), "labels": np.asarray(TARGETS)}
    assert metric.value(metric.statistics(item, MOMENT)) == 50
