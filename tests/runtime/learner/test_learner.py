"""The learner: what it trains, writes, stops at and goes on from."""

import copy
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import burnish
from burnish import nn, optim
from burnish.errors import InputError, RecordError
from burnish.learner import (
    Accuracy,
    Evaluator,
    KeepBest,
    KeepLast,
    Learner,
    LearnerSummary,
    LearningRate,
    Loss,
    NoImprovement,
    Renderer,
    StepOutput,
    Supervised,
    TrainOutput,
    keep_all,
    read_events,
)
from burnish.optim import GradientsParams
from burnish.record import (
    BinGzRecorder,
    BinRecorder,
    CompactRecorder,
    PrettyJsonRecorder,
)

from .conftest import (
    Network,
    StopAt,
    X,
    Y,
    same,
    train_batches,
    valid_batches,
)


def test_it_does_what_the_loop_by_hand_does(learner):
    trained = learner(epochs=2, rate=0.01).fit(train_batches(), valid_batches())

    burnish.seed(1)
    model, optimizer = Network().to("cpu:autodiff"), optim.Adam()
    batches = train_batches()
    for _ in range(2):
        for x, y in batches:
            loss = nn.CrossEntropyLoss()(model(x), y)
            optimizer.step(0.01, model, loss.backward())
    assert same(trained, model)
    assert not trained.training


def test_without_metrics_the_loss_is_shown(tmp_path):
    run = Learner(Network(), optim.Adam(), 0.01, step=Supervised(nn.CrossEntropyLoss()))
    run.fit(train_batches(), valid_batches())
    assert "Loss" in str(run.summary)
    assert all(run.store.epochs("Loss", split) for split in ("train", "valid"))


def test_accumulated_gradients_are_those_of_the_larger_batch(learner):
    class Plain(Network):
        def forward(self, x):
            return self.fc2(self.fc1(x).relu())

    small = learner(model=Plain(), accumulate=4).fit(train_batches(4))
    large = learner(model=Plain()).fit(train_batches(16))
    for key, value in small.state_dict().items():
        np.testing.assert_allclose(value, large.state_dict()[key], rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (False, None),
        (None, None),
        (True, {}),
        (np.True_, {}),
        ("tf32", {"precision": "tf32"}),
        ({"tolerance": 1e-5}, {"tolerance": 1e-5}),
        ({}, {}),
    ],
)
def test_steps_are_compiled_with_the_options_asked_for(learner, asked, options):
    assert learner(compile=asked).compile == options


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"tol": 1e-5}, "Learner compile: expected options among .*tol.*, got 'tol'"),
        (["tf32"], r"Learner compile: expected True, a precision .*, got \['tf32'\]"),
        ("fp64", "expected precision .*, got 'fp64'"),
        ({"tolerance": 2}, "expected a tolerance .*, got 2"),
    ],
)
def test_options_that_plans_do_not_take_are_refused(learner, asked, expected):
    with pytest.raises(InputError, match=expected):
        learner(compile=asked)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("rate", [0.01, optim.Cosine(0.01, steps=9)], ids=str)
def test_compiled_steps_are_the_plain_ones(learner, rate, accumulate):
    runs = []
    for is_compiled in (False, True):
        options = {"compile": is_compiled, "accumulate": accumulate}
        made = learner(rate=copy.deepcopy(rate), **options)
        runs.append((made.fit(train_batches(), valid_batches()), made))
    (one, plain), (other, compiled) = runs
    for path, param in one.named_parameters():  # kernels round otherwise
        np.testing.assert_allclose(
            dict(other.named_parameters())[path].data, param.data, 1e-4, 1e-5
        )
    assert plain.schedule.count == compiled.schedule.count
    assert str(plain.summary) == str(compiled.summary)


def test_batches_left_over_are_a_step_of_their_own(learner):
    run = learner(epochs=1, accumulate=3)
    run.fit(train_batches())  # five batches
    assert run.schedule.count == 2


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize(
    "stop", [("train", 1, 1), ("train", 3, 2), ("train", 2, 5), ("valid", 2, 1)]
)
def test_a_stopped_run_continues_bit_for_bit(learner, tmp_path, stop, accumulate):
    options = {
        "accumulate": accumulate,
        "metrics": [Accuracy(), Loss(), LearningRate()],
    }
    whole = learner("whole", **options).fit(train_batches(), valid_batches())

    first = learner("parts", **options)
    first.renderer = StopAt(*stop, lambda: first.interrupter.stop("a test"))
    first.fit(train_batches(), valid_batches())
    assert first.schedule.count < 20 // accumulate
    burnish.seed(99)
    second = learner("parts", resume="last", **options)
    assert same(second.fit(train_batches(), valid_batches()), whole)
    files = [p for p in (tmp_path / "whole").rglob("*.log") if "exper" not in p.name]
    assert len(files) == 4 * 5
    for path in files:
        other = tmp_path / "parts" / path.relative_to(tmp_path / "whole")
        assert other.read_text() == path.read_text()


def test_a_run_continues_after_any_kept_epoch(learner):
    whole = learner("run", checkpoints=keep_all).fit(train_batches())
    again = learner("run", checkpoints=keep_all, resume=2)
    assert same(again.fit(train_batches()), whole)
    assert sorted(again.store.epochs("Loss", "train")) == [1, 2, 3, 4]
    with pytest.raises(RecordError, match="checkpoint of epoch 7, found 1, 2, 3, 4"):
        learner("run", resume=7).fit(train_batches())


def test_the_last_of_no_checkpoints_is_the_start(learner):
    learner("run", resume="last", epochs=1).fit(train_batches())


def test_a_directory_with_a_run_is_not_written_over(learner):
    learner("run", epochs=2).fit(train_batches())
    with pytest.raises(InputError, match="overwrite=True"):
        learner("run", epochs=1).fit(train_batches())
    run = learner("run", epochs=1, overwrite=True)
    run.fit(train_batches())
    assert list(read_events(run.artifacts.directory).epochs("Loss", "train")) == [1]


def test_the_artifacts_are_those_of_the_book(learner, tmp_path):
    learner("run", epochs=2).fit(train_batches(), valid_batches())
    found = {
        str(path.relative_to(tmp_path / "run"))
        for path in (tmp_path / "run").rglob("*")
        if path.is_file()
    }
    assert found == {"experiment.log", "metrics.json"} | {
        f"checkpoint/{part}-{epoch}.{kind}"
        for part, kind in [
            ("model", "safetensors"),
            ("optim", "safetensors"),
            ("scheduler", "safetensors"),
            ("state", "json"),
        ]
        for epoch in (1, 2)
    } | {
        f"{split}/epoch-{epoch}/{name}.log"
        for split in ("train", "valid")
        for epoch in (1, 2)
        for name in ("Accuracy", "Loss")
    }
    assert (
        "INFO burnish.learner: from epoch 1 of 2"
        in (tmp_path / "run" / "experiment.log").read_text()
    )


STRATEGIES = [
    (KeepLast(1), [4]),
    (KeepLast(3), [2, 3, 4]),
    (KeepBest("Loss"), [2, 4]),  # the latest stays until the next one is written
    ([KeepLast(2), KeepBest("Loss", highest=True)], [1, 3, 4]),
    (keep_all, [1, 2, 3, 4]),
    ([], []),
]


class Losses:
    """A validation step whose loss is given beforehand, one for each epoch."""

    def __init__(self, *losses):
        self.losses = iter(losses)

    def __call__(self, model, batch):
        return StepOutput(np.array(next(self.losses)), None, None)


@pytest.mark.parametrize(("strategy", "kept"), STRATEGIES)
def test_strategies_say_what_is_kept(learner, strategy, kept):
    run = learner(
        "run",
        checkpoints=strategy,
        metrics={"valid": [Loss()]},
        valid_step=Losses(4.0, 1.0, 3.0, 2.0),
    )
    run.fit(train_batches(), valid_batches())
    directory = run.artifacts.directory / "checkpoint"
    assert sorted(int(p.stem[6:]) for p in directory.glob("state-*")) == kept
    assert sorted(int(p.stem[6:]) for p in directory.glob("model-*")) == kept


STOPS = [
    (NoImprovement("Loss", epochs=1), [4.0, 3.0, 3.5, 1.0], 3),
    (NoImprovement("Loss", epochs=2), [4.0, 3.0, 3.5, 1.0], 4),
    (NoImprovement("Loss", epochs=2), [1.0, 3.0, 3.5, 1.0], 3),
    (NoImprovement("Loss", epochs=1, warmup=3), [1.0, 3.0, 3.5, 2.0], 4),
    (NoImprovement("Loss", epochs=1, least=0.5), [4.0, 3.0, 2.8, 1.0], 3),
    (NoImprovement("Loss", epochs=1, highest=True), [1.0, 3.0, 2.8, 1.0], 3),
]


@pytest.mark.parametrize(("stopping", "losses", "epochs"), STOPS)
def test_early_stopping(learner, stopping, losses, epochs):
    run = learner(
        metrics={"valid": [Loss()]},
        valid_step=Losses(*losses),
        early_stopping=stopping,
    )
    run.fit(train_batches(), valid_batches())
    assert max(run.store.epochs("Loss", "valid")) == epochs
    reason = run.interrupter.reason
    assert (reason is not None and "valid Loss no better" in reason) == (
        epochs < 4 or stopping.warmup == 3
    )


def test_the_keyboard_stops_after_the_batch_and_twice_at_once(learner):
    run = learner("run")
    run.renderer = StopAt("train", 2, 3, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    run.fit(train_batches())
    assert run.interrupter.reason == "interrupted by the keyboard"
    assert run.artifacts.checkpointer.moments()[-1] == (1, 3)
    assert signal.getsignal(signal.SIGINT) is before

    def twice():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    run = learner()
    run.renderer = StopAt("train", 1, 1, twice)
    with pytest.raises(KeyboardInterrupt):
        run.fit(train_batches())
    assert signal.getsignal(signal.SIGINT) is before


def test_a_model_brings_its_own_steps(learner):
    class Own(Network):
        def train_step(self, batch):
            item = self.valid_step(batch)
            gradients = item.loss.backward()
            return TrainOutput(GradientsParams.from_grads(gradients, self), item)

        def valid_step(self, batch):
            x, y = batch
            output = self(x)
            return StepOutput(nn.CrossEntropyLoss()(output, y), output, y)

    own = learner(model=Own(), step=None).fit(train_batches(), valid_batches())
    assert same(own, learner().fit(train_batches(), valid_batches()))
    with pytest.raises(InputError, match="a method train_step of Network"):
        learner(step=None).fit(train_batches())


def test_the_summary_is_of_the_epochs(learner):
    run = learner(
        "run", metrics={"valid": [Loss()]}, valid_step=Losses(4.0, 1.0, 3.0, 2.0)
    )
    run.fit(train_batches(), valid_batches())
    lines = [
        "Split  Metric  Min.  Epoch  Max.  Epoch",
        "-----  ------  ----  -----  ----  -----",
        "valid  Loss       1      2     4      1",
    ]
    assert str(run.summary).splitlines() == lines
    assert str(LearnerSummary.read(run.artifacts.directory)).splitlines() == lines


def test_the_store_answers_for_a_directory_too(learner):
    run = learner("run", epochs=2)
    run.fit(train_batches(), valid_batches())
    read = read_events(run.artifacts.directory)
    for store in (run.store, read):
        assert store.metrics("train") == ["Accuracy", "Loss"]
        assert [i for i, _ in store.steps("Loss", 2, "train")] == [1, 2, 3, 4, 5]
        best = store.find_epoch("Accuracy", "train")
        assert store.find_metric("Accuracy", best, "train") == max(
            store.epochs("Accuracy", "train").values()
        )
    assert read.epochs("Loss", "valid") == run.store.epochs("Loss", "valid")
    with (run.artifacts.directory / "train" / "epoch-2" / "Loss.log").open("a") as file:
        file.write('{"iteration": 6, "va')  # a process that was killed
    assert read_events(run.artifacts.directory).steps("Loss", 2, "train") == read.steps(
        "Loss", 2, "train"
    )
    with pytest.raises(RecordError, match="expected the directory of a run"):
        read_events(run.artifacts.directory / "train")


def test_an_epochs_value_is_of_all_its_items(learner):
    model = Network()
    values = Evaluator(
        model,
        step=Supervised(nn.CrossEntropyLoss()),
        metrics=[Accuracy(), Loss()],
        renderer=Renderer(),
    ).eval(train_batches(7))
    output = model(burnish.Tensor(X[:80]))
    assert values["Accuracy"] == pytest.approx(
        100 * (output.numpy().argmax(-1) == Y[:80]).mean()
    )
    loss = nn.CrossEntropyLoss()(output, burnish.Tensor(Y[:80]))
    assert values["Loss"] == pytest.approx(loss.item(), rel=1e-6)


def test_named_test_sets(tmp_path):
    evaluator = Evaluator(
        Network(),
        step=Supervised(nn.CrossEntropyLoss()),
        metrics=[Loss()],
        directory=tmp_path,
        renderer=Renderer(),
    )
    for _ in range(2):  # a second time does not add to the first
        found = evaluator.eval_all({"a": train_batches(), "b": valid_batches()})
    assert set(found) == {"a", "b"}
    lines = (tmp_path / "b" / "test" / "epoch-1" / "Loss.log").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [found["b"]["Loss"]] * 2
    with pytest.raises(InputError, match=r"name a folder, got '\.\./c'"):
        evaluator.eval_all({"../c": []})


@pytest.mark.parametrize(
    ("batches", "options", "message"),
    [
        (list, {}, "epoch 1: expected batches, got none"),
        (lambda: iter([(X, Y)]), {}, "epoch 2: expected batches, got none; a gener"),
        (lambda: [X], {}, r"expected a batch \(\*inputs, targets\), got ndarray"),
        (lambda: [(X, Y)], {"step": lambda *_: None}, "with a loss, got NoneType"),
    ],
)
def test_batches_and_steps_that_are_none(learner, batches, options, message):
    with pytest.raises(InputError, match=message):
        learner(**options).fit(batches())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs: expected 1 or more, got 0"),
        ({"accumulate": 0}, "accumulate: expected 1 or more, got 0"),
        ({"metrics": [Loss(), Loss()]}, "different names, got 'Loss' twice"),
        ({"metrics": ["Loss"]}, r"expected metrics, such as Loss\(\), got 'Loss'"),
        (
            {"early_stopping": NoImprovement("Learning Rate", split="train")},
            "best 'Learning Rate': expected one of .*'Accuracy', 'Loss'",
        ),
    ],
)
def test_mistakes_are_reported(learner, options, message):
    with pytest.raises(InputError, match=message):
        learner(**options).fit(train_batches(), valid_batches())


RECORDED = [
    (None, ".safetensors", True),
    (BinGzRecorder(), ".bin.gz", True),
    (PrettyJsonRecorder("full"), ".json", True),
    (CompactRecorder(), ".safetensors", False),
]


@pytest.mark.parametrize(("recorder", "suffix", "exact"), RECORDED)
def test_checkpoints_are_written_with_the_recorder(learner, recorder, suffix, exact):
    whole = learner().fit(train_batches())
    run = learner("run", epochs=2, recorder=recorder)
    run.fit(train_batches())
    directory = run.artifacts.directory / "checkpoint"
    assert (directory / f"model-2{suffix}").is_file()
    again = learner("run", recorder=recorder, resume="last", checkpoints=KeepLast(1))
    tuned = again.fit(train_batches())
    assert same(tuned, whole) == exact
    for name, value in whole.state_dict().items():
        np.testing.assert_allclose(tuned.state_dict()[name], value, 0.1, 0.01)
    left = sorted(path.name for path in directory.iterdir())
    assert left == [
        f"model-4{suffix}",
        f"optim-4{suffix}",
        f"scheduler-4{suffix}",
        "state-4.json",
    ]


def damage(path):
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)


def forget_random(path):
    page = json.loads(path.read_text())
    del page["crc32"]
    page["item"]["state"]["random"] = [{"bit_generator": "PCG64"}]
    path.write_text(json.dumps(page))


BROKEN = [
    ("state-2.json", forget_random, "expected states of random numbers"),
    ("model-2.safetensors", damage, "the file is damaged"),
    ("optim-2.safetensors", damage, "the file is damaged"),
    ("state-2.json", damage, "expected"),
    ("model-2.safetensors", Path.unlink, "expected a file of this checkpoint"),
]


@pytest.mark.parametrize(("name", "action", "message"), BROKEN)
def test_a_damaged_checkpoint_is_named(learner, name, action, message):
    run = learner("run", epochs=2)
    run.fit(train_batches())
    action(run.artifacts.directory / "checkpoint" / name)
    again = learner("run", resume="last")
    before = {key: value.copy() for key, value in again.model.state_dict().items()}
    with pytest.raises(RecordError, match=rf"{name}: .*{message}"):
        again.fit(train_batches())
    assert all((again.model.state_dict()[k] == v).all() for k, v in before.items())


def test_another_recorder_than_the_checkpoints_is_named(learner):
    learner("run", epochs=1).fit(train_batches())
    with pytest.raises(RecordError, match=r"ends in \.bin; go on with the recorder"):
        learner("run", resume="last", recorder=BinRecorder()).fit(train_batches())


def test_files_that_no_run_wrote_stay(learner, tmp_path):
    own = (
        *("train/cats/1.jpg", "valid/a.csv", "train/notes.log"),
        *("checkpoint/best.pt", "checkpoint/model-1.onnx"),
    )
    for name in own:
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    for _ in range(2):
        learner("run", epochs=1, overwrite=True).fit(train_batches())
        assert all((tmp_path / "run" / name).read_text() == "mine" for name in own)


def test_a_metrics_file_of_somebody_stays(learner, tmp_path):
    path = tmp_path / "run" / "metrics.json"
    path.parent.mkdir()
    path.write_text('{"accuracy": 0.9}')
    with pytest.raises(InputError, match="another directory"):
        learner("run", epochs=1, overwrite=True).fit(train_batches())
    assert path.read_text() == '{"accuracy": 0.9}'
