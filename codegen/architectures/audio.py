"""Audio: Whisper (speech to text) and Wav2Vec2 (labels of frames)."""

from __future__ import annotations

from typing import Any

from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.families import Values, family
from burnish.codegen.architectures.words import ACTIVATIONS, accepts, drops, trunk
from burnish.codegen.render.words import literal

_WHISPER = {
    "Model": "mel spectrum, ids -> (batch, time, dim), (batch, source, dim)",
    "ForConditionalGeneration": "mel spectrum, ids -> logits (batch, time, vocab)",
    "ForAudioClassification": "mel spectrum -> logits (batch, labels)",
}
_ENCODER = "d_model encoder_layers encoder_attention_heads encoder_ffn_dim"
_WAV2VEC2 = {
    "Model": "sound (batch, samples) -> (batch, frames, dim)",
    "ForCTC": "sound (batch, samples) -> logits (batch, frames, vocab)",
    "ForSequenceClassification": "sound (batch, samples) -> logits (batch, labels)",
    "ForAudioFrameClassification": "sound -> logits (batch, frames, labels)",
}


@family("whisper.py.jinja", {"whisper": "Whisper"}, _WHISPER, "model")
def whisper(config: Config, head: str) -> Values:
    config.fixed(use_weighted_layer_sum=False)
    config.ignore(
        "is_encoder_decoder",
        "scale_embedding",  # no version of transformers multiplies by it
        "num_hidden_layers",
        "median_filter_width",  # of time stamps
        "max_length",
        "alignment_heads",
    )
    _augmented(config)
    config.training_only("activation_dropout", "encoder_layerdrop", "decoder_layerdrop")
    mels = config.size("num_mel_bins", 80)
    source = config.size("max_source_positions", 1500)
    sizes: dict[str, Any] = {
        "mels": mels,
        "source": source,
        **trunk(config, 384, 4, 6, 1536, keys=_ENCODER),
    }
    decoder = {
        "vocab": config.size("vocab_size", 51865),
        "target": config.size("max_target_positions", 448),
        "decoder_depth": config.depth("decoder_layers", 4),
        "decoder_heads": config.size("decoder_attention_heads", 6),
        "decoder_hidden": config.size("decoder_ffn_dim", 1536),
    }
    width = config.size("classifier_proj_size", 256)
    labels = config.labels()
    if head == "ForAudioClassification":
        sizes |= {"width": width, "labels": labels}
    else:
        sizes |= decoder
    config.multiple("d_model", sizes["dim"], sizes.get("decoder_heads", 1))
    features = f"float32[batch, {mels}, {2 * source}]"
    suppress = {
        "suppress": config.tokens("suppress_tokens"),
        "begin_suppress": config.tokens("begin_suppress_tokens"),
    }
    suppress = {name: tokens for name, tokens in suppress.items() if tokens}
    return {
        "sizes": sizes,
        **drops(config, sizes, dropout=0.0, attention_dropout=0.0),
        "act": config.word("activation_function", "gelu", ACTIVATIONS),
        "padding": config.token("pad_token_id", 50256),
        "tied": config.flag("tie_word_embeddings", True),
        "start": config.token("decoder_start_token_id", 50257, generating=True),
        "eos": config.tokens("eos_token_id", 50256),
        "suppressed": [(name, literal(tokens)) for name, tokens in suppress.items()],
        "accepts": accepts(
            input_features=features,
            **(
                {}
                if head == "ForAudioClassification"
                else {"decoder_input_ids": "int64[batch, time]"}
            ),
        ),
        "accepts_encode": accepts(input_features=features),
        "contract": _WHISPER[head],
    }


@family("wav2vec2.py.jinja", {"wav2vec2": "Wav2Vec2"}, _WAV2VEC2, "wav2vec2")
def wav2vec2(config: Config, head: str) -> Values:
    config.fixed(add_adapter=False, adapter_attn_dim=None, use_weighted_layer_sum=False)
    config.ignore(*_OF_OTHER_HEADS)
    masked = _augmented(config)
    config.training_only("layerdrop")
    channels = config.sizes("conv_dim", [512] * 7)
    strides = config.sizes("conv_stride", [5, 2, 2, 2, 2, 2, 2])
    kernels = config.sizes("conv_kernel", [10, 3, 3, 3, 3, 2, 2])
    if not len(channels) == len(strides) == len(kernels):
        config.refuse("conv_kernel", f"{len(channels)} numbers", kernels)
    taps = config.size("num_conv_pos_embeddings", 128)
    sizes: dict[str, Any] = {
        "channels": tuple(channels),
        "kernels": tuple(kernels),
        "strides": tuple(strides),
        "taps": taps,
        "tap_groups": config.size("num_conv_pos_embedding_groups", 16),
        **trunk(config, 768, 12, 12, 3072),
    }
    config.multiple("hidden_size", sizes["dim"], sizes["tap_groups"])
    return {
        "sizes": sizes,
        **drops(config, sizes, hidden_dropout=0.1, attention_dropout=0.1),
        "activation_dropout": config.rate("activation_dropout", 0.1),
        "projection_dropout": config.rate("feat_proj_dropout", 0.0),
        "final_dropout": config.rate("final_dropout", 0.1),
        "act": config.word("hidden_act", "gelu", ACTIVATIONS),
        "conv_act": config.word("feat_extract_activation", "gelu", ACTIVATIONS),
        "conv_bias": config.flag("conv_bias", False),
        "norm": config.word("feat_extract_norm", "group", ("group", "layer")),
        "stable": config.flag("do_stable_layer_norm", False),
        "eps": config.number("layer_norm_eps", 1e-5),
        "even": taps % 2 == 0,
        "masked": masked,
        "vocab": config.size("vocab_size", 32),
        "width": config.size("classifier_proj_size", 256),
        "labels": config.labels(),
        "accepts": accepts(
            input_values="float32[batch, samples]",
            attention_mask="any[batch, samples]",
        ),
        "contract": _WAV2VEC2[head],
    }


def _augmented(config: Config) -> bool:
    """Whether training hides parts of the sound, which is not written: a note."""
    config.ignore(
        "mask_time_length",
        "mask_time_min_masks",
        "mask_feature_length",
        "mask_feature_min_masks",
    )
    shares = (
        config.rate("mask_time_prob", 0.05),
        config.rate("mask_feature_prob", 0.0),
    )
    if config.flag("apply_spec_augment", config.values["model_type"] == "wav2vec2"):
        config.training_only("mask_time_prob", "mask_feature_prob")
    return any(shares)


_OF_OTHER_HEADS = (
    "adapter_kernel_size",
    "adapter_stride",
    "codevector_dim",
    "contrastive_logits_temperature",
    "ctc_loss_reduction",
    "ctc_zero_infinity",
    "diversity_loss_weight",
    "feat_extract_dropout",
    "feat_quantizer_dropout",
    "freeze_feat_extract_train",
    "hidden_dropout_prob",
    "mask_channel_length",
    "mask_channel_min_space",
    "mask_channel_other",
    "mask_channel_prob",
    "mask_channel_selection",
    "mask_time_min_space",
    "mask_time_other",
    "mask_time_selection",
    "no_mask_channel_overlap",
    "no_mask_time_overlap",
    "num_adapter_layers",
    "num_codevector_groups",
    "num_codevectors_per_group",
    "num_feat_extract_layers",
    "num_negatives",
    "output_hidden_size",
    "proj_codevector_dim",
    "tdnn_dilation",
    "tdnn_dim",
    "tdnn_kernel",
    "tie_word_embeddings",
    "xvector_output_dim",
)
