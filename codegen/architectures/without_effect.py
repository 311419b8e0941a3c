"""Configuration keys without effect on the forward pass."""

_GENERATION = """
    assistant_model bad_words_ids begin_suppress_tokens cache_implementation
    constraints diversity_penalty do_sample early_stopping
    encoder_no_repeat_ngram_size encoder_repetition_penalty epsilon_cutoff
    eta_cutoff exponential_decay_length_penalty forced_bos_token_id
    forced_decoder_ids forced_eos_token_id guidance_scale language length_penalty
    max_length max_new_tokens max_time min_length min_new_tokens
    no_repeat_ngram_size num_assistant_tokens num_beam_groups num_beams
    num_return_sequences penalty_alpha prefix remove_invalid_values
    renormalize_logits repetition_penalty return_dict_in_generate suppress_tokens
    temperature top_k top_p typical_p use_cache
"""
_TOKENS = """
    bos_token bos_token_id cls_token_id decoder_start_token_id eos_token
    eos_token_id mask_token_id max_seq_length max_sequence_length model_max_length
    n_ctx pad_token pad_token_id sep_token_id seq_length tokenizer_class
    tokenizer_name unk_token unk_token_id
"""
_TRAINING = """
    directionality finetuning_task gradient_checkpointing
    gradient_checkpointing_kwargs id2label init_std initializer_factor
    initializer_range label2id label_smoothing loss_type num_labels pooler_fc_size
    pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type
    problem_type
"""
_COMPUTATION = """
    attn_implementation chunk_size_feed_forward dtype keys_to_ignore_at_inference
    kv_cache_dtype output_attentions output_hidden_states output_past
    output_router_logits output_scores return_dict torch_dtype torchscript
    use_flash_attention use_flash_attn use_fused_cross_entropy use_fused_rms_norm
    use_fused_rope use_scan
"""
_ORIGIN = """
    architectures auto_map is_composition is_llama_config model_type name_or_path
    revision sentence_transformers task_specific_params transformers.js_config
    transformers_version unsloth_version
"""

WITHOUT_EFFECT = frozenset(
    "".join((_GENERATION, _TOKENS, _TRAINING, _COMPUTATION, _ORIGIN)).split()
)
"""The numbers of a forward pass do not depend on them."""
