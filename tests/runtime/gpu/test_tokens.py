"""Steps of one token on a GPU: kernels against float64, plans against the model."""

import os

import cupy
import numpy as np
import pytest

from burnish import Tensor, rng, seed
from burnish.backend.cuda.decoding import decode_attention, few_rows, sampling
from burnish.caches import Cache
from burnish.generation import Decoder, drawn, filtered, generate
from burnish.lowbit import Level, QuantScheme
from tests.runtime.plan import token_kernels
from tests.runtime.plan.test_token_plan import MODELS, VOCAB, Model, Turning

RANDOM = np.random.default_rng(0)
NEAR = {"float": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2, "int8": 2e-6, "int4": 2e-6}


def near(ours, wanted, tolerance):
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=tolerance * scale)


def weight(kind, outs, ins, bias=False, zeros=False, block=32):
    """A weight for the GPU, and the same one in NumPy."""
    values = RANDOM.standard_normal((outs, ins)).astype(np.float32)
    own = RANDOM.standard_normal(outs).astype(np.float32) if bias else None
    if kind == "float":
        made = few_rows.Weight(kind, values, outs, ins, own)
    elif kind in ("float16", "bfloat16"):
        made = few_rows.Weight(kind, few_rows.halved(values, kind), outs, ins, own)
    else:
        bits = 8 if kind == "int8" else 4
        half = 1 << bits - 1
        codes = few_rows.coded(RANDOM.integers(-half, half, (outs, ins)), bits)
        shape = (outs, ins // block)
        scales = RANDOM.uniform(0.5, 1, shape).astype(np.float32) / half
        off = RANDOM.integers(-4, 4, shape).astype(np.float32) if zeros else None
        made = few_rows.Weight(kind, codes, outs, ins, own, scales, off, block)
    put = [cupy.asarray(p) if isinstance(p, np.ndarray) else p for p in made]
    return few_rows.Weight(*put), made


@pytest.mark.parametrize("kind", NEAR)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 16])
@pytest.mark.parametrize(
    ("outs", "ins"), [(64, 64), (100, 768), (2304, 2112), (9001, 128)]
)
def test_products(kind, rows, outs, ins):
    x = RANDOM.standard_normal((rows, ins)).astype(np.float32)
    beside = RANDOM.standard_normal((rows, outs)).astype(np.float32)
    ours, same = weight(kind, outs, ins, bias=True, zeros=True)
    for half in ("",) if kind == "float" else ("", "float16", "bfloat16"):
        if kind in ("float16", "bfloat16") and half not in ("", kind):
            continue
        if not few_rows.takes(rows, [ours], half):
            continue
        more = {"act": ("gelu_tanh", 0.0), "half": half}
        y = few_rows.product(
            cupy.asarray(x), [ours], residual=cupy.asarray(beside), **more
        )
        wanted = token_kernels.product(x, [same], residual=beside, **more)
        rounds = NEAR.get(half, 2e-6) if rows > 2 else 2e-6
        near(y.get(), wanted, rounds)


@pytest.mark.parametrize("kind", NEAR)
@pytest.mark.parametrize("rows", [1, 2, 4, 9])
@pytest.mark.parametrize("norm", ["", "layer", "rms"])
def test_products_of_several_weights_gates_and_norms(kind, rows, norm):
    ins = 256
    x = RANDOM.standard_normal((rows, ins)).astype(np.float32) * 3 + 1
    half = kind if kind.endswith("16") else ""
    given = [weight(kind, n, ins, bias=i > 0) for i, n in enumerate((96, 33, 160))]
    gates = [weight(kind, 112, ins, bias=True) for _ in range(2)]
    gain, shift = RANDOM.standard_normal((2, ins)).astype(np.float32)
    own = few_rows.Norm(norm, gain, None if norm == "rms" else shift, 1e-5)
    put = few_rows.Norm(
        norm, *(None if a is None else cupy.asarray(a) for a in own[1:3]), 1e-5
    )
    fits = norm and few_rows.takes_norm(rows, ins, half)
    for pairs, more in (
        (given, {}),
        (gates, {"gated": True, "act": ("swish", 1.0)}),
        (gates, {"gated": True, "act": ("gelu", 0.0), "out": np.float16}),
    ):
        y = few_rows.product(
            cupy.asarray(x),
            [a for a, _ in pairs],
            half=half,
            norm=put if fits else None,
            **more,
        )
        wanted = token_kernels.product(
            x,
            [b for _, b in pairs],
            norm=own if fits else None,
            **{**more, "out": np.float64},
        )
        rounds = NEAR[kind] if half and rows > 2 else 4e-6
        near(y.get(), wanted, max(rounds, 1e-3 if "out" in more else 0))


@pytest.mark.parametrize("rows", [3, 16, 23])
@pytest.mark.parametrize(("outs", "ins"), [(2304, 768), (768, 3072), (48, 2048)])
def test_rows_and_results_of_half_precision(outs, ins, rows):
    x = RANDOM.standard_normal((rows, ins)).astype(np.float16)
    beside = RANDOM.standard_normal((rows, outs)).astype(np.float32)
    ours, same = weight("float16", outs, ins, bias=True)
    more = {"half": "float16", "out": np.float16}
    y = few_rows.product(cupy.asarray(x), [ours], residual=cupy.asarray(beside), **more)
    assert y.dtype == np.float16
    near(y.get(), token_kernels.product(x, [same], residual=beside), 2e-3)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("heads", "kv_heads", "size"),
    [(12, 12, 64), (8, 2, 64), (6, 2, 80), (4, 4, 128), (8, 1, 16), (2, 1, 256)],
)
def test_attention(kind, heads, kv_heads, size):
    n, length = 2, 384
    rooms = [
        RANDOM.standard_normal((n, kv_heads, length, size)).astype(np.float32)
        for _ in "kv"
    ]
    if kind != "float32":
        rooms = [few_rows.halved(room, kind) for room in rooms]
    room = decode_attention.Room(n, heads, kv_heads, size, length)
    angles = RANDOM.uniform(0, 6, (n, size // 2)).astype(np.float32)
    turn = np.cos(angles), np.sin(angles)
    for place in (0, 1, 63, 200, 383):
        q = RANDOM.standard_normal((n, heads, size)).astype(np.float32)
        new = RANDOM.standard_normal((2, n, kv_heads, size)).astype(np.float32)
        mask = RANDOM.random((n, length)) < 0.7
        mask[:, place] = True
        for shown, by in (
            (None, None),
            (mask, turn),
            (mask[:1], (turn[0][:1], turn[1][:1])),
        ):
            held = [each.copy() for each in rooms]
            put = [cupy.asarray(each) for each in rooms]
            at = np.array([place])
            wanted = token_kernels.attended(
                q, tuple(new), held, at, None, scale=0.125, angles=by, mask=shown
            )
            more = {
                "angles": None if by is None else tuple(map(cupy.asarray, by)),
                "mask": None if shown is None else cupy.asarray(shown),
            }
            ours = decode_attention.attended(
                cupy.asarray(q), tuple(map(cupy.asarray, new)), put, cupy.asarray(at),
                room, scale=0.125, **more,
            )  # fmt: skip
            # A rotated key may round to the half precision number beside.
            near(ours.get(), wanted, 5e-6 if kind == "float32" else 5e-4)
            for a, b in zip(put, held, strict=True):
                near(
                    token_kernels.widened(a.get()),
                    token_kernels.widened(b),
                    1e-6 if kind == "float32" else 8e-3,
                )
            again = decode_attention.attended(
                cupy.asarray(q), None, put, cupy.asarray(at), room, scale=0.125,
                mask=more["mask"],
            )  # fmt: skip
            if by is None:
                near(again.get(), wanted, 5e-6 if kind == "float32" else 4e-5)
    assert not room.done.any()


def chosen(logits, choice, chances, banned=None):
    given = cupy.zeros((len(logits), 1), np.int64)
    read = given, cupy.zeros(1, np.int64), cupy.zeros((len(logits), 1), np.int64)
    tokens = sampling.Tokens(choice, 1, read, [], chances)
    tokens.choose(cupy.asarray(logits), 0, 7, banned)
    assert (int(read[1][0]), read[2].get().min()) == (7, 1)
    np.testing.assert_array_equal(given.get(), tokens.made.get())
    return given.get()[:, 0]


def test_the_likeliest_token_is_the_first_of_equal_ones():
    logits = np.round(RANDOM.standard_normal((5, 50257)) * 2).astype(np.float32)
    logits[2] = -np.inf
    greedy = sampling.Choice(False, 1.0, None, 1.0, 0)
    np.testing.assert_array_equal(chosen(logits, greedy, None), logits.argmax(-1))
    banned = cupy.asarray(logits[0] == logits[0].max())
    wanted = np.where(banned.get(), -np.inf, logits).argmax(-1)
    np.testing.assert_array_equal(chosen(logits, greedy, None, banned), wanted)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize(
    ("top_k", "top_p"),
    [(None, 1.0), (1, 1.0), (50, 1.0), (None, 0.9), (40, 0.5), (None, 0.01)],
)
def test_drawn_tokens_are_those_of_the_plain_loop(
    temperature, top_k, top_p, monkeypatch
):
    logits = RANDOM.standard_normal((64, 1000)).astype(np.float32) * 3
    chances = RANDOM.random((1, 64))

    class Fixed:
        def random(self, shape):
            return chances.reshape(shape)

    monkeypatch.setattr("burnish.generation.rng.generator", Fixed)
    wanted = drawn(filtered(logits, temperature, top_k, top_p))
    ours = chosen(logits, sampling.Choice(True, temperature, top_k, top_p, 0), chances)
    assert (ours == wanted).mean() > 0.98  # rounding moves a bound
    kept = filtered(logits, temperature, top_k, top_p)
    assert np.isfinite(kept[np.arange(64), ours]).mean() > 0.98


PRECISIONS = {"fp32": 2e-5, "fp16": 1e-2, "bf16": 8e-2}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("name", MODELS)
def test_steps_are_those_of_the_model(name, rows, precision):
    seed(2)
    model = MODELS[name][0]().to("cuda")
    decoder, own, plain = Decoder(model, precision), Cache(64), Cache(64)
    ids = Tensor(RANDOM.integers(0, 40, (rows, 9))).to("cuda")
    decoder(ids[:, :5], cache=own), model(ids[:, :5], cache=plain)
    for at in range(5, 9):
        new = ids[:, at : at + 1]
        ours = decoder(new, cache=own).numpy()
        near(ours, model(new, cache=plain).numpy(), PRECISIONS[precision])
    assert own.length == 9
    assert len(decoder.known) == 1, decoder.explain()
    assert "one CUDA graph" in decoder.explain()
    # Several positions at once run plainly, behind planned ones.
    near(
        decoder(ids[:, :3], cache=own).numpy(),
        model(ids[:, :3], cache=plain).numpy(),
        PRECISIONS[precision],
    )


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("rows", [1, 4])
def test_quantized_weights(bits, rows):
    model = MODELS["llama"][0]().to("cuda")
    for param in model.parameters():
        if len(param.shape) > 1:
            param.assign(
                param.quantize(QuantScheme(f"q{bits}s", level=Level.block(32)))
            )
    ids = Tensor(RANDOM.integers(0, 40, (rows, 6))).to("cuda")
    for precision, tolerance in (("fp32", 2e-5), ("fp16", 1e-2)):
        decoder, own, plain = Decoder(model, precision), Cache(64), Cache(64)
        decoder(ids[:, :5], cache=own), model(ids[:, :5], cache=plain)
        ours = decoder(ids[:, 5:], cache=own).numpy()
        near(ours, model(ids[:, 5:], cache=plain).numpy(), tolerance)
        assert len(decoder.known) == 1, decoder.explain()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"eos": [3, 7, 11, 20]},
        {"do_sample": True, "top_k": 9},
        {"do_sample": True, "eos": 5, "pad": 1},
    ],
)
def test_generate_gives_the_tokens_of_the_plain_loop(choice, padded):
    seed(3)
    model = MODELS["llama"][0]().to("cuda")
    ids = RANDOM.integers(0, VOCAB, (3, 6))
    mask = np.ones((3, 6), int)
    mask[0, :2] = 0
    more = {**choice, "suppress": [5], "begin_suppress": [9]}
    more["attention_mask"] = mask if padded else None
    decoder = Decoder(model)
    for _ in range(2):
        seed(5)
        wanted, state = generate(model, ids, 40, **more).numpy(), rng.state()
        seed(5)
        ours = generate(model, ids, 40, compile=decoder, **more).numpy()
        np.testing.assert_array_equal(ours, wanted)
        assert repr(rng.state()) == repr(state)
    assert len(decoder.known) == 1


def test_memory_stays_over_ten_thousand_steps():
    model = MODELS["llama"][0]().to("cuda")
    decoder, cache = Decoder(model, "fp16"), Cache(128)
    ids = Tensor([[1, 2, 3]]).to("cuda")
    decoder(ids, cache=cache)
    plan = decoder._loop().plan(cache, False)
    cupy.cuda.Device().synchronize()
    pool, used = cupy.get_default_memory_pool(), None
    # The card's free memory is also that of other workers.
    alone = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") == "1"
    for i in range(10_000):
        plan.run()
        if i in (100, 9_999):
            cupy.cuda.Device().synchronize()
            free = cupy.cuda.runtime.memGetInfo()[0] if alone else None
            now = free, pool.total_bytes(), decoder._loop()._room.nbytes
            assert used in (None, now)
            used = now
    generate(model, [[1, 2, 3]], 100, compile=decoder)
    before = pool.total_bytes(), decoder._loop()._room.nbytes
    for _ in range(20):
        generate(model, [[1, 2, 3]], 100, compile=decoder)
    assert before == (pool.total_bytes(), decoder._loop()._room.nbytes)


def test_two_decoders_eager_work_and_other_streams_in_turn():
    models = [Model(Turning(2), Turning(4)).to("cuda") for _ in range(2)]
    ids = Tensor(RANDOM.integers(0, 40, (2, 30))).to("cuda")
    decoders, own = [Decoder(m, "fp32") for m in models], [Cache(64), Cache(64)]
    plain = [Cache(64), Cache(64)]
    for i in range(2):
        decoders[i](ids[:, :4], cache=own[i]), models[i](ids[:, :4], cache=plain[i])
    other = cupy.cuda.Stream(non_blocking=True)
    try:
        import torch
    except ImportError:
        torch = None
    noise = cupy.ones((512, 512), np.float32)
    cupy.cuda.get_current_stream().synchronize()
    for at in range(4, 30):
        new = ids[:, at : at + 1]
        with other:
            busy = noise * 2 + noise
        beside = torch.ones(512, 512, device="cuda").cumsum(0) if torch else None
        if at % 3 == 0:  # the plan's calls may be on any stream
            other.synchronize()
            with other:
                made = decoders[0](new, cache=own[0])
            other.synchronize()
        else:
            made = decoders[0](new, cache=own[0])
        second = decoders[1](new, cache=own[1])
        near(made.numpy(), models[0](new, cache=plain[0]).numpy(), 2e-5)
        near(second.numpy(), models[1](new, cache=plain[1]).numpy(), 2e-5)
        other.synchronize()
        assert float(busy[0, 0]) == 3
        assert beside is None or float(beside[-1, 0]) == 512
