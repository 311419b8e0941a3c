"""PyTorch files that torch wrote: what is read is what torch would load."""

import warnings

import ml_dtypes  # noqa: F401  (with it, bfloat16 and float8 keep their dtypes)
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from burnish.errors import RecordError  # noqa: E402
from burnish.serialize import open_weights, read_pickle_data  # noqa: E402
from tests.runtime.serialize.torch_files import (  # noqa: E402
    PROTOCOLS,
    as_numpy,
    big_endian,
    leaves,
    saved,
    tar,
)

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

warnings.simplefilter("ignore")
BASE = torch.arange(24.0).reshape(4, 6)
DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex32", "complex64"),
    *("complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"),
    *("float8_e5m2fnuz", "float8_e8m0fnu"),
]
TENSORS = {
    "whole": BASE,
    "transposed": BASE.t(),
    "part": BASE[1:, ::2],
    "expanded": torch.ones(1).expand(3, 4),
    "empty": torch.empty(0, 3),
    "scalar": torch.tensor(3),
    "parameter": torch.nn.Parameter(torch.ones(2, 2)),
    "conjugate": torch.tensor([1 + 2j]).conj(),
    "imaginary": torch.tensor([1 + 2j]).conj().imag,
    "many axes": torch.arange(64).reshape((2,) * 6).permute(5, 3, 1, 0, 2, 4),
    **{name: torch.tensor([0, 1, 1]).to(getattr(torch, name)) for name in DTYPES},
    "per tensor": torch.quantize_per_tensor(BASE, 0.1, 3, torch.qint8),
    "qint32": torch.quantize_per_tensor(BASE, 0.1, 3, torch.qint32),
    "per channel": torch.quantize_per_channel(
        BASE, torch.arange(1.0, 5) / 8, torch.arange(4), 0, torch.quint8
    ),
    "last channel": torch.quantize_per_channel(
        BASE, torch.arange(1.0, 7) / 8, torch.arange(6), 1, torch.qint8
    ),
    "coo": torch.sparse_coo_tensor([[0, 2, 2], [1, 0, 0]], [1.0, 2, 3], (3, 4)),
    "coo rows": torch.sparse_coo_tensor([[2, 0]], [[1.0, 2], [3, 4]], (3, 2)),
    "csr": torch.eye(3).to_sparse_csr(),
    "csr batch": torch.eye(3).expand(2, 3, 3).to_sparse_csr(),
    "csc": BASE.to_sparse_csc(),
    "bsr": BASE.to_sparse_bsr((2, 3)),
    "bsc": BASE.to_sparse_bsc((2, 3)),
}
NESTED = {
    "state_dict": TENSORS,
    "rounds": [torch.ones(1), (torch.zeros(2), {"k": torch.ones(3)})],
    3: torch.ones(2),
    "array": np.arange(6, dtype=np.float32).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "wide": np.arange(3, dtype=">i4"),
}
PLAIN = {
    "epoch": 3,
    "big": 2**70,
    "negative": -300,
    "rate": 0.1,
    "text": "ünï",
    "yes": True,
    "none": None,
    "bytes": b"\xff\x00",
    "list": [1, [2, (3,)]],
    "set": {1, 2},
    "complex": 1 + 2j,
    "size": torch.Size([1, 2]),
    "scalar": np.float32(2.5),
    "range": range(3),
}


def forms(value):
    for protocol in PROTOCOLS:
        yield f"zip {protocol}", saved(value, True, protocol)
        yield f"legacy {protocol}", saved(value, False, protocol)


def same(tensor, expected):
    got = tensor.read()
    assert not got.flags.writeable
    assert tensor.shape == got.shape
    if got.dtype.name.startswith(("bfloat", "float8")):
        got = got.astype(np.float32)
    want = as_numpy(expected)
    assert got.dtype == want.dtype.newbyteorder("=")
    np.testing.assert_array_equal(got, want)


def test_every_tensor_in_every_form():
    expected = dict(leaves(NESTED))
    for form, data in forms(NESTED):
        weights = open_weights(data)
        assert weights.keys() == expected.keys(), form
        for name, tensor in expected.items():
            same(weights[name], tensor)


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_names_are_torchs(name):
    tensor = open_weights(saved({"x": TENSORS[name]}))["x"]
    assert tensor.dtype == name
    assert tensor.nbytes == TENSORS[name].nbytes


def test_numbers_and_text_come_with_the_tensors():
    for form, data in forms(PLAIN):
        assert read_pickle_data(data) == PLAIN | {"size": (1, 2)}, form


def test_names_of_torch_are_text():
    value = {"dtype": torch.float16, "device": torch.device("cuda:1")}
    tree = read_pickle_data(saved(value))
    assert tree == {"dtype": "torch.float16", "device": "cuda:1"}


def test_a_state_dict_with_metadata():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    weights = open_weights(saved(module.state_dict()))
    assert list(weights) == list(module.state_dict())
    for name, tensor in module.state_dict().items():
        same(weights[name], tensor)


def test_an_optimizer_checkpoint():
    module = torch.nn.Linear(3, 4)
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(3)).sum().backward()
    optimizer.step()
    weights = open_weights(
        saved({"model": module.state_dict(), "optimizer": optimizer.state_dict()})
    )
    same(
        weights["optimizer.state.0.exp_avg"],
        optimizer.state_dict()["state"][0]["exp_avg"],
    )
    assert weights.tree["optimizer"]["param_groups"][0]["lr"] == 1e-3
    assert list(weights.under("model")) == ["weight", "bias"]


def test_tensors_of_one_storage_share_memory():
    tied = {"embed": BASE, "head": BASE, "rows": BASE[1:], "other": BASE.clone()}
    for zipped in (True, False):
        weights = open_weights(saved(tied, zipped))
        assert weights["embed"].shares_memory(weights["rows"])
        assert not weights["embed"].shares_memory(weights["other"])
        embed, head, rows, other = (weights[name].read() for name in tied)
        assert np.shares_memory(embed, head)
        assert np.shares_memory(embed, rows)
        assert not np.shares_memory(embed, other)


def test_big_endian_values():
    data = big_endian(saved({"a": BASE, "b": BASE[1:, ::2]}))
    weights = open_weights(data)
    same(weights["a"], BASE)
    same(weights["b"], BASE[1:, ::2])
    assert np.shares_memory(a := weights["a"].read(), weights["b"].read())
    assert a.dtype.isnative


def test_the_archive_of_the_first_releases():
    tensors = {"weight": BASE, "part": BASE[1:, ::2], "bias": torch.ones(3)}
    weights = open_weights(tar(tensors))
    assert weights.kind == "PyTorch TAR"
    for name, tensor in tensors.items():
        same(weights[name], tensor)


def test_a_file_without_checksums(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"a": BASE}, tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    same(open_weights(tmp_path / "a.pt")["a"], BASE)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))

    def forward(self, x):
        return self.body(x)


def test_a_pickled_module_is_refused_by_name_or_read_as_inert_records():
    net = Net()
    for zipped in (True, False):
        data = saved(net, zipped)
        with pytest.raises(RecordError, match=r"objects of .*\.Net, torch.*inert=True"):
            open_weights(data)
        weights = open_weights(data, inert=True)
        assert list(weights) == list(net.state_dict())
        for name, tensor in net.state_dict().items():
            same(weights[name], tensor)


def test_torchscript_is_read_as_inert_records(tmp_path):
    net = Net().eval()
    torch.jit.trace(net, torch.ones(1, 2)).save(tmp_path / "net.pt")
    with pytest.raises(RecordError, match=r"objects of __torch__"):
        open_weights(tmp_path / "net.pt")
    weights = open_weights(tmp_path / "net.pt", inert=True)
    assert weights.kind == "TorchScript"
    assert weights.keys() == net.state_dict().keys()
    for name, tensor in net.state_dict().items():
        same(weights[name], tensor)


def test_a_tensor_without_values_says_so():
    weights = open_weights(saved({"x": torch.empty(2, device="meta")}))
    assert weights["x"].shape == (2,)
    with pytest.raises(RecordError, match="no values"):
        weights["x"].read()
