"""Fine-tuned weights go back into the graph that their module came from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from burnish.codegen.errors import ExportError
from burnish.models import _numbers
from burnish.models._gallery import ENTRIES, Entry
from tests.harness.imported import imported
from tests.harness.weights_back import check_tuned, check_unchanged, inputs

torch = pytest.importorskip("torch")

from tests.codegen.test_round_trip import MODELS as DRAWN  # noqa: E402
from tests.codegen.test_round_trip import drawn, first_result, masked  # noqa: E402
from tests.harness import torch_networks as networks  # noqa: E402
from tests.harness.torch_exports import exported  # noqa: E402

pytestmark = pytest.mark.oracle

WORDS = torch.randint(3, 31, (2, 5))
#: Fresh networks, whose equal weights an exporter merges.
FRESH: dict[str, tuple[Callable[[], Any], Any]] = {
    "resnet": (networks.ResNet18, (2, 3, 32, 32)),
    "squeezenet": (networks.SqueezeNet, (2, 3, 64, 64)),
    "autoencoder": (networks.AutoEncoder, (2, 1, 16, 16)),
    "lstm": (networks.Tagger, WORDS),
    "encoder": (networks.encoder, (2, 5, 16)),
    "bert": (networks.bert, WORDS),
    "gpt2": (networks.gpt2, WORDS),
    "llama": (networks.llama, WORDS),
    "distilbert": (masked, WORDS),
}


def both(model: Any, x: Any, folder: Path, dynamo: bool) -> None:
    axes = [{0: "batch", 1: "time"}] if x.dtype == torch.int64 else []
    path = exported(model, (x,), folder / "net.onnx", dynamo, axes)
    module = imported(path, folder)
    check_unchanged(module, path, folder)
    fed = dict.fromkeys(inputs(path), x.numpy())
    check_tuned(module, path, folder, fed)


CASES = [(name, dynamo) for name in FRESH for dynamo in (False, True)]
CASES.remove(("gpt2", False))  # which that exporter cannot write
CASES.remove(("llama", False))
CASES.remove(("encoder", True))  # whose biases of zeros that exporter leaves out


@pytest.mark.parametrize(("name", "dynamo"), CASES)
def test_fresh_networks(tmp_path: Path, name: str, dynamo: bool) -> None:
    torch.manual_seed(0)
    make, given = FRESH[name]
    model = first_result(make().eval())
    x = torch.randn(given) if isinstance(given, tuple) else given
    both(model, x, tmp_path, dynamo)


def test_a_bias_that_the_file_lacks_has_no_place_there(tmp_path: Path) -> None:
    torch.manual_seed(0)
    make, given = FRESH["encoder"]
    with pytest.raises(
        ExportError, match=r"out_proj\.bias: expected .* leave it as it"
    ):
        both(make().eval(), torch.randn(given), tmp_path, dynamo=True)


@pytest.mark.parametrize("dynamo", [False, True], ids=["older", "newer"])
@pytest.mark.parametrize("name", DRAWN)
def test_networks_without_equal_weights(
    tmp_path: Path, name: str, dynamo: bool
) -> None:
    both(*drawn(name), tmp_path, dynamo)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.module)
def test_the_gallery(tmp_path: Path, entry: Entry) -> None:
    if not entry.file.is_file():
        pytest.skip(f"{entry.original} is not in the cache; run: {entry.command}")
    module = imported(entry.file, tmp_path)
    check_unchanged(module, entry.file, tmp_path)
    fed = next(iter(_numbers.feeds(entry.folder)))
    check_tuned(module, entry.file, tmp_path, fed)
