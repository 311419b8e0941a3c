"""Replacements for names of PyTorch's packages: torch, nn, optim, data."""

from __future__ import annotations

FUNCTIONS = {
    **dict.fromkeys(("cat", "concatenate", "hstack", "vstack"), "ops.concat"),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), "ops.clip(x, min=0, max=1)"),
    **dict.fromkeys(("amax", "max_"), "ops.max(x, axis=1)"),
    **dict.fromkeys(("amin", "min_"), "ops.min(x, axis=1)"),
    **dict.fromkeys(("cummax", "cummin"), "ops.cum_max(x, axis=1), values alone"),
    **dict.fromkeys(("expand_dims", "newaxis"), "ops.unsqueeze(x, axis=0)"),
    **dict.fromkeys(("permute_dims", "matrix_transpose"), "ops.transpose(x, axes)"),
    **dict.fromkeys(("mm", "bmm", "mv"), "ops.matmul"),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), "ops.conv, or nn.Conv2d"),
    **dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        "ops.conv_transpose, or nn.ConvTranspose2d",
    ),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), "ops.max_pool"),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), "ops.avg_pool"),
    **dict.fromkeys(
        ("mse_loss", "l1_loss", "nll_loss", "kl_div"),
        "burnish.nn, where losses are: nn.mse_loss",
    ),
    **dict.fromkeys(
        (
            "zeros",
            "ones",
            "full",
            "empty",
            "arange",
            "linspace",
            "eye",
            "rand",
            "randn",
        ),
        "Tensor.zeros(2, 3), Tensor.arange(3), ...",
    ),
    **dict.fromkeys(
        ("zeros_like", "ones_like", "full_like", "empty_like"),
        "x.zeros_like(), x.full_like(2), ...",
    ),
    **dict.fromkeys(
        ("tensor", "as_tensor", "from_numpy", "array", "asarray"), "Tensor(data)"
    ),
    **dict.fromkeys(
        ("gather", "index_select"),
        "ops.take(x, indices, axis=1) for "
        "slices, ops.gather_elements(x, indices, axis=1) for elements",
    ),
    **dict.fromkeys(("scatter", "scatter_add"), "ops.scatter_elements"),
    "multiply": "ops.mul",
    "divide": "ops.div",
    "true_divide": "ops.div",
    "floor_divide": "ops.floor_div",
    "subtract": "ops.sub",
    "negative": "ops.neg",
    "absolute": "ops.abs",
    "power": "ops.pow",
    "float_power": "ops.pow",
    "remainder": "ops.mod",
    "eq": "ops.equal",
    "ne": "ops.not_equal",
    "lt": "ops.less",
    "le": "ops.less_or_equal",
    "gt": "ops.greater",
    "ge": "ops.greater_or_equal",
    "less_equal": "ops.less_or_equal",
    "greater_equal": "ops.greater_or_equal",
    "repeat": "ops.tile, which PyTorch's repeat is",
    "unique": "ops.unique_all(x), whose first result is the values",
    "nonzero": "ops.argwhere(x), or ops.non_zero(x)",
    "astype": "x.astype(dtype), or ops.cast(x, dtype=dtype)",
    "hardtanh": "ops.hard_tanh",
    "hardswish": "ops.hard_swish",
    "hardsigmoid": "ops.hard_sigmoid",
    "logsigmoid": "ops.log_sigmoid",
    "vector_norm": "ops.norm(x, p=2, axis=1)",
    "inv": "ops.inverse",
    "fft": "ops.rfft, ops.irfft, ops.dft",
    "masked_select": "x[mask]",
    "isclose": "ops.is_close(a, b)",
    "topk": "ops.top_k(x, 5)",
    "quantile": "ops.sort(x, axis=1), indexed at the wanted rank, "
    "or np.quantile(x.numpy(), q)",
    "log10": "ops.log(x) / np.log(10)",
    "rsqrt": "1 / ops.sqrt(x)",
    "resize": "ops.interpolate(x, size=(8, 8))",
    "pixel_shuffle": "nn.PixelShuffle(2)(x)",
    "repeat_interleave": "ops.take(x, indices, axis=0)",
}

LAYERS = {
    "functional": "burnish.ops for operators, burnish.nn for losses: ops.relu(x)",
    "Parameter": "nn.Param(values)",
    "ParameterDict": "nn.Param in attributes: self.scale = nn.Param(values)",
    "SyncBatchNorm": "nn.BatchNorm2d(8)",
    **dict.fromkeys(
        ("LazyLinear", "LazyConv1d", "LazyConv2d", "LazyConv3d"),
        "nn.Linear(3, 2), nn.Conv2d(3, 8, 3): sizes are given, values are made lazily",
    ),
    "ParameterList": "a list of nn.Param in an attribute",
    "ModuleList": "a list of modules in an attribute: self.layers = [...]",
    "DataParallel": "burnish.distributed",
    "utils": "optim.ClipGlobalNorm for clipping, nn.Reparameterizer for weight norms",
}

SCHEDULES = {
    "StepLR": "Steps(1e-3, 10)",
    "MultiStepLR": "MultiStep(1e-3, [10, 20])",
    "ExponentialLR": "Exponential(1e-3, 0.9)",
    "CosineAnnealingLR": "Cosine(1e-3, 100)",
    "CosineAnnealingWarmRestarts": "CosineRestarts(1e-3, 10)",
    "OneCycleLR": "OneCycle(1e-3, 100)",
    "CyclicLR": "Cyclic(1e-4, 1e-3, 10)",
    "LinearLR": "Linear(1e-3, 1e-4, 100)",
    "ConstantLR": "Constant(1e-3)",
    "PolynomialLR": "Polynomial(1e-3, 0.0, 100)",
    "LambdaLR": "Factor(1e-3, lambda n: 0.9**n)",
    "SequentialLR": "Sequential(schedules, [10])",
    "ChainedScheduler": "Composed(first, second)",
}

RULES = {
    "lr_scheduler": "rate = optim.Cosine(1e-3, 100), then optimizer.step(rate.step(), "
    "model, gradients)",
    **{
        name: f"rate = optim.{made}, then optimizer.step(rate.step(), model, gradients)"
        for name, made in SCHEDULES.items()
    },
    **dict.fromkeys(
        ("clip_grad_norm_", "clip_grad_norm"),
        "optim.SGD(clip=optim.ClipGlobalNorm(1.0))",
    ),
}

DATA = {
    "TensorDataset": "data.batches((x, y), 32, shuffle=0), or data.ArrayDataset",
    **dict.fromkeys(
        ("Sampler", "RandomSampler", "SequentialSampler", "SubsetRandomSampler"),
        "data.DataLoader(dataset, 32, shuffle=0), or data.ShuffledDataset",
    ),
    "WeightedRandomSampler": "data.SamplerDataset",
    "BatchSampler": "data.DataLoader(dataset, 32)",
    "DistributedSampler": "burnish.distributed",
    "default_collate": "data.stack",
    "IterableDataset": "data.Dataset, whose items have numbers",
    "random_split": "data.split, data.train_test_split",
}

STARTS = {
    f"{name}_": f"nn.Param(nn.init.{made}, shape)"
    for name, made in {
        **{
            name: f"{name}()"
            for name in (
                *("xavier_uniform", "xavier_normal", "orthogonal", "trunc_normal"),
                *("kaiming_uniform", "kaiming_normal", "normal", "dirac"),
            )
        },
        **{name: name for name in ("zeros", "ones", "eye")},
        "uniform": "uniform(1.0)",
        "constant": "constant(0.5)",
        "sparse": "sparse(0.1)",
    }.items()
}

PACKAGE = {
    "no_grad": "from burnish.autodiff import no_grad, or model.valid()",
    "inference_mode": "model.valid(): no gradients are recorded on its device",
    "enable_grad": 'a tensor on an autodiff device: x.to("cpu:autodiff")',
    "set_grad_enabled": "model.train() and model.valid()",
    "manual_seed": "burnish.seed(3)",
    "save": 'model.save_file("model.safetensors")',
    "load": 'Model.from_file("model.safetensors")',
    "cuda": 'Device("cuda"), or Device.enumerate() for what there is',
    "cat": "ops.concat([a, b], axis=0)",
    **{
        name: f'dtype="{name}"'
        for name in (
            "float16",
            "float32",
            "float64",
            "bfloat16",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "bool",
        )
    },
    "float": 'dtype="float32"',
    "long": 'dtype="int64"',
    "device": 'Device("cpu")',
    "from_dlpack": "Tensor.from_dlpack(array)",
}
