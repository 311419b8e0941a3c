"""Plans of float16: single precision inside, float16 at the ends and at casts."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, num_threads, ops, set_num_threads
from burnish._engine.pytree import leaves
from tests.runtime.plan.checks import records

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EVERY = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)


def drawn(*shape, scale=1.0, dtype=np.float16):
    numbers = np.random.default_rng(0).standard_normal(shape) * scale
    return Tensor(numbers.astype(dtype))


class Net(nn.Module):
    def __init__(self, dtype):
        self.conv = nn.Conv2d(3, 24, 3, padding=1, dtype=dtype)
        self.norm = nn.LayerNorm(24, dtype=dtype)
        self.fc = nn.Linear(24, 7, dtype=dtype)

    def forward(self, x):
        x = ops.relu(self.conv(x)).mean(axis=(2, 3))
        return ops.softmax(self.fc(self.norm(x)), axis=-1)


@pytest.mark.usefixtures("canaries")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_plan_is_as_near_to_the_truth_as_the_plain_call(threads):
    model = Net("float16")
    model(drawn(1, 3, 9, 9))
    exact = Net("float64")
    exact(drawn(1, 3, 9, 9, dtype=np.float64))
    for ours, theirs in zip(exact.parameters(), model.parameters(), strict=True):
        ours.assign(theirs.data.astype(np.float64))
    x = drawn(2, 3, 9, 9)
    wanted = exact(Tensor(x.data.astype(np.float64))).numpy()
    before = num_threads()
    set_num_threads(threads)
    fast = burnish.compile(model)
    made = fast(x)
    set_num_threads(before)
    assert made.dtype == np.float16
    assert "eagerly" not in str(fast.plan(x))
    rounding = 2.0**-11 * np.abs(wanted)
    assert (np.abs(made.numpy() - wanted) <= rounding + 1e-5).all()
    assert np.abs(model(x).numpy() - wanted).max() <= 1e-2


@pytest.mark.usefixtures("canaries")
@pytest.mark.parametrize(
    ("function", "x"),
    [
        pytest.param(lambda x: x.to("float32") * 2.0, Tensor(EVERY), id="from"),
        pytest.param(
            lambda x: (x * 1.0).to("float16"),
            drawn(3, 5000, scale=3e4, dtype=np.float32),
            id="to",
        ),
        pytest.param(
            lambda x: (x * 1.0).to("float16"),
            drawn(4099, scale=2e-7, dtype=np.float32),
            id="to small numbers",
        ),
        pytest.param(
            lambda x: (x * 1.0).to("float16").to("float32") * 3.0,
            drawn(77, dtype=np.float32),
            id="there and back",
        ),
        pytest.param(
            lambda x: (x + 1).to("float16"),
            Tensor(np.arange(5000).reshape(50, 100)),
            id="from integers",
        ),
        pytest.param(lambda x: x > 0.5, drawn(33), id="to truth"),
        pytest.param(
            lambda x: (x == 0.1, x > 0.3, x != 0.2, ops.hard_tanh(x, -0.1, 0.3) == x),
            Tensor(np.array([0.1, 0.2, 0.3, -0.1], np.float16)),
            id="beside numbers that float16 rounds",
        ),
        pytest.param(
            lambda x: (x == np.float64(0.1), x < 1e6, x / 1e-9),
            Tensor(np.array([0.1, 0.2, np.inf, -np.inf], np.float16)),
            id="beside numbers that it does not round",
        ),
        pytest.param(lambda x: (x.mT, x.reshape(-1), x), drawn(5, 7), id="moved"),
        pytest.param(
            lambda x: (x.mT.relu(), ops.sort(x), x.relu()),
            drawn(5, 7),
            id="around an eager call",
        ),
    ],
)
def test_casts_and_moves_are_exact(function, x):
    fast = burnish.compile(function)
    wanted = function(x)
    for _ in range(2):
        made = fast(x)
        for one, other in zip(leaves(made), leaves(wanted), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert records(fast)


def test_infinity_comes_where_numbers_leave():
    fast = burnish.compile(lambda x: (x * 4.0, x * 4.0 / 8.0))
    large, small = fast(Tensor(np.array([32768.0, -49152.0], np.float16)))
    np.testing.assert_array_equal(large.numpy(), [np.inf, -np.inf])
    np.testing.assert_array_equal(small.numpy(), [16384.0, -24576.0])


def test_buffers_of_float16_are_changed_as_in_the_plain_call():
    class Counter(nn.Module):
        def __init__(self):
            self.total = nn.Buffer(np.zeros(3, np.float16))

        def forward(self, x):
            self.total.assign((self.total + x).data)
            return x * 2.0

    plain, planned = Counter(), Counter()
    fast = burnish.compile(planned)
    for _ in range(3):
        x = drawn(3)
        np.testing.assert_array_equal(fast(x).numpy(), plain(x).numpy())
    np.testing.assert_array_equal(planned.total.numpy(), plain.total.numpy())
