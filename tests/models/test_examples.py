"""The examples do what they say, with settings that take seconds."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import numpy as np
import pytest

from burnish import Tensor, data, nn, seed
from burnish.data.sources.mnist import normalized
from burnish.errors import InputError
from burnish.generation import Cache
from burnish.learner import Progress, Run, read_events
from burnish.learner.events import Entry
from burnish.models.examples import (
    custom_renderer,
    custom_training_loop,
    guide,
    image_folder,
    named_tensor,
    regression,
    text_classification,
    text_generation,
    wgan,
)
from burnish.models.examples._tokens import Subwords, Words, learned
from burnish.serialize import load_file


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# --- digits ---


def test_guide_learns_continues_and_reads() -> None:
    first = guide.main(["--epochs=2"])
    assert first["Accuracy"] > 70
    run = Path("runs/guide")
    second = guide.main(["--epochs=3", "--resume"])
    assert second["Loss"] < first["Loss"]
    assert read_events(run).epochs("Loss", "train").keys() == {1, 2, 3}
    assert guide.TrainingConfig.load(run / "config.json").num_epochs == 3
    assert load_file(run / "model.safetensors")["linear1.weight"].shape == (512, 1024)
    test = data.MnistDataset(guide.DIGITS, "test")
    right = (guide.infer(run, test.images) == test.labels).mean()
    assert 100 * right == pytest.approx(second["Accuracy"])


def test_guide_network_is_the_books() -> None:
    model = guide.ModelConfig().init()
    assert model.num_params == 531_178
    assert model.valid()(Tensor(np.zeros((3, 28, 28), "float32"))).shape == (3, 10)


def test_guide_moves_digits_by_a_pixel_at_most() -> None:
    image = np.zeros((28, 28), np.uint8)
    image[10, 20] = 1
    generator = np.random.default_rng(0)
    found = {
        tuple(np.argwhere(guide.shifted((image, 7), generator)[0])[0])
        for _ in range(200)
    }
    assert found == {(i, j) for i in (9, 10, 11) for j in (19, 20, 21)}


def test_custom_loop_learns(capsys: pytest.CaptureFixture[str]) -> None:
    found = custom_training_loop.main(["--epochs=2"])
    assert found["accuracy"] > 0.7
    assert found["loss"] < 1.2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[train, epoch 1, iteration 20] loss ")
    assert lines[-1].startswith("[valid, epoch 2] loss ")


def test_custom_loop_adds_gradients_up() -> None:
    """Two halves of a batch, added up, are a step of the whole."""
    digits = data.MnistDataset(guide.DIGITS, "test")
    after = []
    for size, accumulate in ((64, 1), (32, 2)):
        seed(0)
        model = guide.ModelConfig(dropout=0.0, hidden_size=16).init()
        trainer = custom_training_loop.Trainer(model, accumulate)
        part = data.Subset(digits, range(64))
        trainer.train(1, data.batches(part, size, batcher=normalized))
        after.append(model.state_dict())
    for path, value in after[0].items():
        np.testing.assert_allclose(after[1][path], value, 1e-4, 1e-5)


def test_custom_loop_steps_each_part_once() -> None:
    model = guide.ModelConfig(hidden_size=16).init()
    paths = [
        set(group.paths(model))
        for group in (custom_training_loop.CONVOLUTIONS, custom_training_loop.REST)
    ]
    assert not paths[0] & paths[1]
    assert paths[0] | paths[1] == {path for path, _ in model.named_parameters()}


def test_custom_renderer_draws_a_line_an_epoch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert custom_renderer.main(["--epochs=1"])["Accuracy"] > 50
    out = capsys.readouterr().out
    assert out.startswith("Model: 531,178 parameters\n")
    assert f"epoch 1/1 ▐{'█' * 24}▌  loss █" in out


def test_custom_renderer_with_and_without_a_total() -> None:
    file = io.StringIO()
    renderer = custom_renderer.BarRenderer(file)
    renderer.start(Run("Net", 1234, "cpu", 2, 1, {}))
    for epoch, loss, total in ((1, 2.0, 4), (2, 0.5, None)):
        entry = Entry("Loss", loss, loss, "")
        renderer.step(Progress("train", epoch, 2, 1, total, 0.1, [entry]))
        renderer.epoch("train", epoch, {"Loss": loss})
        renderer.epoch("valid", epoch, {"Accuracy": 90.0})
    renderer.end("the end", None)
    assert file.getvalue().splitlines() == [
        "Net: 1,234 parameters",
        "",
        f"epoch 1/2 ▐{'█' * 6:24}▌  loss █ 2.000  90.0 %",
        "",
        f"epoch 2/2 ▐{'█' * 24}▌  loss █▂ 0.500  90.0 %",
        "",
        "the end",
    ]


def test_wgan_leaves_grey_for_ink_and_paper() -> None:
    pytest.importorskip("PIL")
    found = wgan.main(["--steps=40"])
    assert np.isfinite(list(found.values())).all()
    assert Path("runs/wgan/digits-0040.png").stat().st_size > 1000
    seed(0)
    before = wgan.Gan()
    after = wgan.Gan()
    after.generator.load_file("runs/wgan/generator.safetensors")
    real = data.MnistDataset(guide.DIGITS, "test").images.mean() / 127.5 - 1
    far, near = (abs(gan.generate(64).numpy().mean() - real) for gan in (before, after))
    assert near < far / 2


def test_wgan_without_pillow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    wgan.main(["--steps=1"])
    assert "pip install 'burnish[data]'" in capsys.readouterr().out
    assert [path.name for path in Path("runs/wgan").iterdir()] == [
        "generator.safetensors"
    ]


def test_wgan_penalty_is_of_the_slope() -> None:
    gan = wgan.Gan()
    gan.critic = nn.Sequential(nn.Linear(784, 1)).to("cpu:autodiff")
    weight = np.full((1, 784), 3 / 28, "float32")  # a slope of 3 everywhere
    gan.critic[0].weight.assign(weight)
    penalty = gan.steepness(Tensor.randn(5, 784), Tensor.randn(5, 784))
    assert penalty.item() == pytest.approx(4, rel=1e-5)
    gradients = penalty.backward()
    found = gan.critic[0].weight.grad(gradients)
    np.testing.assert_allclose(found, np.full((1, 784), 2 * 2 / 28), rtol=1e-4)


def test_wgan_judges_real_digits_well() -> None:
    digits = data.MnistDataset(guide.DIGITS, "test")
    (images,) = wgan.scaled(digits.images, digits.labels)
    found = wgan.judged(images)
    assert found["sure"] > 0.9
    assert found["variety"] > 9.5


# --- tables and pictures ---


def test_regression_explains_prices() -> None:
    options = ["--rows=1000", "--epochs=30", "--file=made/houses.csv"]
    assert regression.main(options)["Explained"] > 0.5
    made = Path("made/houses.csv")
    with made.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == [*regression.COLUMNS, regression.TARGET]
    assert len(rows) == 1001
    made.write_text("\n".join(",".join(row) for row in rows[:201]))
    regression.main(["--epochs=1", "--file=made/houses.csv"])
    assert len(made.read_text().splitlines()) == 201  # the user's file stays


def test_regression_says_which_columns_lack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("houses.csv").write_text("income,age,rooms,price\n1,2,3,4\n")
    with pytest.raises(SystemExit):
        regression.main(["--file=houses.csv"])
    printed = capsys.readouterr().err
    assert "houses.csv: expected columns bedrooms, east, household, north" in printed


def test_regression_normalizes_with_the_rows_it_was_given() -> None:
    regression.make_up(Path("houses.csv"), 100)
    table = data.read_csv("houses.csv")
    part = data.Subset(table, range(60))
    normalizer = regression.Normalizer(part)
    inputs, prices = normalizer(table.get_batch(np.arange(60)))
    np.testing.assert_allclose(inputs.mean(0), np.zeros(8), atol=1e-5)
    np.testing.assert_allclose(inputs.std(0), np.ones(8), 1e-5)
    assert (inputs.dtype, prices.dtype) == (np.float32, np.float32)
    rest, _ = normalizer(table.get_batch(np.arange(60, 100)))
    assert np.abs(rest.mean(0)).max() > 0.05


def test_image_folder_distinguishes_shapes(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    found = image_folder.main(["--count=300", "--epochs=10", "--workers=1"])
    assert found["Accuracy"] > 70
    assert sorted(path.name for path in Path("runs/shapes").iterdir()) == [
        "disc", "square", "triangle",
    ]  # fmt: skip
    assert len(list(Path("runs/shapes").glob("*/*.png"))) == 300
    out = capsys.readouterr().out
    assert out.startswith("300 pictures of disc, square, triangle\n")


def test_image_folder_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"Pillow; pip install 'burnish\[data\]'"):
        image_folder.main([])
    assert not Path("runs").exists()


# --- text ---


def test_text_classification_is_above_chance() -> None:
    options = ["--texts=2000", "--epochs=6", "--say=The plot was not dull."]
    assert text_classification.main(options)["Accuracy"] > 75


def test_reviews_say_what_they_mean() -> None:
    rng = np.random.default_rng(0)
    reviews = dict(text_classification.review(rng) for _ in range(500))
    assert 0.4 < np.mean(list(reviews.values())) < 0.6
    for text, praise in reviews.items():
        last = text.replace(", and ", " but ").split(" but ")[-1].split(", ")[-1]
        good = any(word in last for word in text_classification.GOOD)
        assert (good != (" not " in last)) == praise, text


def test_classifier_passes_padding_over() -> None:
    model = text_classification.Classifier(20).valid()
    short, padded = Tensor([[3, 4, 5]]), Tensor([[3, 4, 5, 0, 0]])
    np.testing.assert_allclose(model(short), model(padded), 1e-4, 1e-5)


def test_text_generation_learns_and_writes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    options = ["--sentences=1000", "--epochs=4", "--prompt=The hungry wolf"]
    found = text_generation.main(options)
    assert found["perplexity"] < 12
    assert "\nThe hungry wolf" in capsys.readouterr().out


def test_writer_gives_the_same_from_its_cache() -> None:
    model = text_generation.Writer(30).valid()
    ids = Tensor(np.random.default_rng(0).integers(0, 30, (2, 7)))
    cache = Cache()
    parts = [model(ids[:, a:b], cache=cache) for a, b in ((0, 3), (3, 4), (4, 7))]
    found = np.concatenate([part.numpy() for part in parts], axis=1)
    np.testing.assert_allclose(found, model(ids), 1e-4, 1e-5)


def test_grammar_knows_right_from_wrong() -> None:
    rng, grammar = np.random.default_rng(0), text_generation.grammar()
    for _ in range(200):
        assert grammar.fullmatch(text_generation.sentence(rng))
    for text in (
        "The wolf hear a goose.",
        "The wolf that two children fear hear a goose.",
        "The wolf that two children fears hears a goose.",
        "A wolves hear a goose.",
        "The wolf hears a goose",
        "The wolf hears a goose. ",
    ):
        assert not grammar.fullmatch(text), text


@pytest.mark.parametrize("kind", [Words, Subwords])
def test_tokens_come_back_as_text(kind: type[Words | Subwords]) -> None:
    if kind is Subwords:
        pytest.importorskip("tokenizers")
    rng = np.random.default_rng(0)
    text = " ".join(text_generation.sentence(rng) for _ in range(200))
    tokens = kind([text], 400)
    ids = tokens.encode(text)
    assert tokens.decode(ids) == text
    assert 0 < min(ids) <= max(ids) < tokens.size <= 400
    assert len(ids) < len(text) / 2.5


def test_words_that_were_not_learnt() -> None:
    tokens = Words(["a wolf, a fox."], 5)
    assert tokens.size == 5
    assert tokens.decode(tokens.encode("a wolf")).startswith("a")
    assert tokens.encode("zebra") == [1]


def test_tokens_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert isinstance(learned(["a wolf"], 10), Words)


# --- names ---


def test_named_tensor_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    apart = named_tensor.main(["--batch=3", "--time=4"])
    assert max(apart.values()) < 1e-4
    out = capsys.readouterr().out
    assert "attention: {'batch': 3, 'time': 4, 'head': 4, 'unit': 8}" in out
    assert out.count("refused: ") == 3
