"""Searches of onnxruntime's, from a decoder in an attribute: the same tokens."""

import functools

import numpy as np
import onnx
import pytest

from burnish.codegen import pipeline
from burnish.codegen.errors import ExportError, UnsupportedError
from burnish.codegen.loaded import imported, model_of
from burnish.codegen.output.generated import Options
from burnish.codegen.verify import verify
from burnish.codegen.writers import export, onto

pytest.importorskip("torch")

from tests.harness import searches as s

pytestmark = pytest.mark.oracle("torch", "onnxruntime")

R = np.random.default_rng(0)
PROMPTS = R.integers(0, s.PAD, (3, 6)).astype(np.int32)
PROMPTS[1, :2] = PROMPTS[2, :4] = s.PAD
SOURCES = R.integers(0, s.PAD, (3, 7)).astype(np.int32)
SOURCES[1, :3] = s.PAD
SOURCES[2, 6] = s.PAD
MASK = (PROMPTS != s.PAD).astype(np.int32)
MASK[0, 1] = 0
WORDS = np.ones(s.VOCAB, np.int32)
WORDS[5:20] = 0
FIRST_WORDS = np.ones((3, s.VOCAB), np.int32)
FIRST_WORDS[:, 20:] = 0
SEEN = R.integers(0, 2, (3, s.VOCAB)).astype(np.int32)


def one(value):
    return np.asarray([value], np.float32 if isinstance(value, float) else np.int32)


LENGTH = {"max_length": one(20)}
MASKS = ("min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask")
MASKS += ("attention_mask",)
BEAMS = {**LENGTH, "min_length": one(1), "num_beams": one(4)}
BEAMS |= {"num_return_sequences": one(3), "length_penalty": one(1.0)}
ALONE = BEAMS | {"num_beams": one(1), "num_return_sequences": one(1)}
GPT = {
    "greedy": ("GreedySearch", LENGTH, {}),
    "greedy, least length": ("GreedySearch", {**LENGTH, "min_length": one(15)}, {}),
    "greedy, repetitions": (
        "GreedySearch",
        {**LENGTH, "repetition_penalty": one(1.7)},
        {"no_repeat_ngram_size": 2},
    ),
    "greedy, masks of words": (
        "GreedySearch",
        {**LENGTH, "vocab_mask": WORDS, "prefix_vocab_mask": FIRST_WORDS},
        {},
    ),
    "greedy, mask": ("GreedySearch", {**LENGTH, "attention_mask": MASK}, {}),
    "beams": ("BeamSearch", BEAMS, {}),
    "one beam": ("BeamSearch", ALONE, {}),
    "beams, long ones": ("BeamSearch", {**BEAMS, "length_penalty": one(2.0)}, {}),
    "beams, short ones": ("BeamSearch", {**BEAMS, "length_penalty": one(-1.0)}, {}),
    "beams, early": ("BeamSearch", BEAMS, {"early_stopping": 1}),
    "beams, n-grams": ("BeamSearch", BEAMS, {"no_repeat_ngram_size": 3}),
    "beams, all inputs": (
        "BeamSearch",
        {
            **BEAMS,
            "min_length": one(12),
            "length_penalty": one(0.7),
            "repetition_penalty": one(1.5),
            "vocab_mask": WORDS,
            "prefix_vocab_mask": FIRST_WORDS,
            "attention_mask": MASK,
        },
        {"early_stopping": 1},
    ),
    "sampling": (
        "Sampling",
        {**LENGTH, "seed": one(7)},
        {"temperature": 0.8, "top_p": 0.5},
    ),
    "sampling, the likeliest kept": (
        "Sampling",
        {**LENGTH, "seed": one(3), "min_length": one(10)},
        {"temperature": 1.3, "top_p": 0.9, "custom": 1},
    ),
    "sampling, some kept": (
        "Sampling",
        {**LENGTH, "seed": one(11), "repetition_penalty": one(1.3)},
        {"top_p": 0.05, "min_tokens_to_keep": 5, "filter_value": -50.0},
    ),
}
T5 = {
    "beams": (BEAMS, {}),
    "one beam": (ALONE, {}),
    "early": (BEAMS, {"early_stopping": 1}),
    "all inputs": (
        {
            **BEAMS,
            "min_length": one(12),
            "length_penalty": one(0.7),
            "repetition_penalty": one(1.5),
            "vocab_mask": WORDS,
        },
        {"no_repeat_ngram_size": 2},
    ),
    "mask": (
        {**BEAMS, "attention_mask": (SOURCES[2, 1] != SOURCES).astype(np.int32)},
        {},
    ),
}
FORMS = {
    "logits of the start": {},
    "states too": {"takes_states": True},
    "cross keys alone": {"starts": False},
}


def test_source_is_a_module_and_a_call(tmp_path):
    model = s.search("GreedySearch", gpt2(0), ["input_ids", "max_length"])
    onnx.save(model, tmp_path / "m.onnx")
    text = pipeline.generate(tmp_path / "m.onnx").text
    assert "self.h = [H(dim, heads, hidden) for _ in range(2)]" in text
    assert "def forward(self, input_ids, position_ids, attention_mask, past_0" in text
    assert CALL in text


CALL = """
    def forward(self, input_ids, max_length):
        return generation.greedy_search(
            self.decoder, input_ids, max_length.item(), cache=(2, 2, 16), eos=39, pad=38
        )
"""

SEEDS = (0, 2)
"""Models: in some of them all prompts end, in some of them none does."""


@functools.cache
def gpt2(seed):
    return s.gpt2(seed)


@functools.cache
def t5(seed, form):
    return s.t5(seed, **FORMS[form])


def tokens(model, given):
    """What onnxruntime gives."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, given)


def compare(model, given, path):
    wanted = tokens(model, given)
    onnx.save(model, path / "m.onnx")
    pipeline.write(pipeline.generate(path / "m.onnx"), path)
    with imported(path / "m.py") as module:
        made = model_of(module, path / "m.py")(**given)
    made = made if isinstance(made, tuple) else (made,)
    for name, y, right in zip(("tokens", "sums"), made, wanted, strict=False):
        if right.dtype == np.int32:
            np.testing.assert_array_equal(y.numpy(), right, name)
        else:
            np.testing.assert_allclose(y.numpy(), right, 1e-4, 1e-4, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", GPT)
def test_tokens_of_a_decoder(name, seed, tmp_path):
    op, extra, attributes = GPT[name]
    outputs = 3 if op == "BeamSearch" else 1
    model = s.search(
        op, gpt2(seed), ["input_ids", *extra], outputs=outputs, **attributes
    )
    compare(model, {"input_ids": PROMPTS, **extra}, tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", T5)
def test_tokens_of_an_encoder_and_a_decoder(name, form, tmp_path):
    extra, attributes = T5[name]
    model = s.search(
        *("BeamSearch", t5(1, form), ["input_ids", *extra]),
        **attributes,
        outputs=2,
        model_type=1,
        decoder_start_token_id=2,
    )
    compare(model, {"input_ids": SOURCES, **extra}, tmp_path)


def tuned(model, path, change):
    """The file's module, after `change` of its parameters by their paths."""
    onnx.save(model, path / "m.onnx")
    pipeline.write(pipeline.generate(path / "m.onnx"), path)
    with imported(path / "m.py") as module:
        made = model_of(module, path / "m.py")
    change(dict(made.named_parameters()))
    made.save_file(path / "tuned.safetensors")
    return made


@pytest.mark.parametrize("moved", [True, False])
def test_tuned_weights_go_back_into_the_file(moved, tmp_path):
    """moved: weights are those of the graph around the decoder."""
    names = ["input_ids", *BEAMS]
    model = s.search("BeamSearch", gpt2(0), names, moved=moved)

    def change(parameters):
        for parameter in parameters.values():
            parameter.assign(parameter.data[..., ::-1].copy())

    made = tuned(model, tmp_path, change)
    onto(tmp_path / "tuned.safetensors", tmp_path / "m.onnx", tmp_path / "new.onnx")
    given = {"input_ids": PROMPTS, **BEAMS}
    (wanted,) = tokens(onnx.load(tmp_path / "new.onnx"), given)
    np.testing.assert_array_equal(made(**given).numpy(), wanted)
    (before,) = tokens(model, given)
    assert wanted.shape != before.shape or (wanted != before).any()


def test_a_weight_of_two_graphs_is_one_tensor_of_the_file(tmp_path):
    names = ["input_ids", *BEAMS]
    options = {"model_type": 1, "decoder_start_token_id": 2}
    model = s.search("BeamSearch", t5(1, "logits of the start"), names, **options)
    encoder = next(a.g for a in model.graph.node[0].attribute if a.name == "encoder")
    for node in encoder.node:
        each = [n.removeprefix("model.") if "shared" in n else n for n in node.input]
        node.input[:] = each

    def change(parameters):
        shared = parameters["decoder.shared.weight"]
        shared.assign(shared.data + 1)

    tuned(model, tmp_path, change)
    with pytest.raises(ExportError, match=r"encoder.*same values.*decoder.*one tensor"):
        onto(tmp_path / "tuned.safetensors", tmp_path / "m.onnx", tmp_path / "new.onnx")


FED = {
    "greedy, all inputs": ("GreedySearch", [*LENGTH, *MASKS], {}),
    "beams": ("BeamSearch", [*BEAMS, *MASKS[1:]], {}),
    "one beam that is given": ("BeamSearch", [*BEAMS], {"num_beams": one(1)}),
    "a length that is given": ("BeamSearch", [*BEAMS], {"max_length": one(9)}),
    "beams that are kept": ("BeamSearch", [*BEAMS], {"num_return_sequences": one(5)}),
    "sampling": ("Sampling", [*LENGTH, "seed", "presence_mask"], {}),
    "encoder": ("BeamSearch", [*BEAMS, "attention_mask"], {}),
}


@pytest.mark.parametrize("name", FED)
def test_verify_makes_prompts_and_lengths_that_fit(name, tmp_path):
    op, names, held = FED[name]
    options = {"model_type": 1, "decoder_start_token_id": 2}
    graphs, attributes = gpt2(0), {"top_p": 0.5} if op == "Sampling" else {}
    if name == "encoder":
        graphs, attributes = t5(1, "logits of the start"), options
    model = s.search(op, graphs, ["input_ids", *names], **attributes)
    onnx.save(model, tmp_path / "m.onnx")
    files = {each: tmp_path / f"{each}.npy" for each in held}
    for each, array in held.items():
        np.save(files[each], array)
    made = pipeline.generate(tmp_path / "m.onnx", Options(selftest=True))
    pipeline.write(made, tmp_path)
    assert max(map(len, made.text.splitlines())) <= 88
    assert verify(tmp_path / "m.onnx", tmp_path, inputs=files).agrees


REFUSED = {
    "Whisper": (lambda model: attribute(model, "model_type", 2), "model_type is 2"),
    "open sizes": (lambda model: opened(model), "leaves open the sizes of 'past_0'"),
    "in place": (lambda model: shared(model), "writes keys and values in place"),
    "captured": (lambda model: captured(model), "reads what is computed around it"),
}


def decoder_of(model):
    (node,) = (n for n in model.graph.node if n.op_type == "BeamSearch")
    return next(a.g for a in node.attribute if a.name == "decoder")


def inputs(model):
    return decoder_of(model).input


def attribute(model, name, value):
    model.graph.node[0].attribute.append(onnx.helper.make_attribute(name, value))


def shared(model):
    """As for CUDA: how long the past is, which shares its buffer with the present."""
    inputs(model).append(onnx.helper.make_tensor_value_info("length", 6, [1]))


def opened(model):
    inputs(model)[3].type.tensor_type.shape.dim[2].ClearField("dim_value")


def captured(model):
    cast = onnx.helper.make_node("Cast", ["input_ids"], ["ids"], to=6)
    model.graph.node.insert(0, cast)
    first = next(n for n in decoder_of(model).node if "input_ids" in n.input)
    first.input[list(first.input).index("input_ids")] = "ids"


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_says_why(name, tmp_path):
    change, reason = REFUSED[name]
    model = s.search("BeamSearch", gpt2(0), ["input_ids", *BEAMS])
    change(model)
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match=f"BeamSearch.*{reason}.*save each"):
        pipeline.generate(tmp_path / "m.onnx")


def test_the_way_back_to_onnx_is_refused_by_the_name_of_the_search(tmp_path):
    graph = s.search("GreedySearch", gpt2(0), ["input_ids", *LENGTH])
    model = tuned(graph, tmp_path, lambda parameters: None)
    with pytest.raises(ExportError, match=r"greedy_search.*export the decoder.*tuned"):
        export(model, PROMPTS, LENGTH["max_length"])
