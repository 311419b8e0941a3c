"""What PyTorch and NumPy call something that has another name or form here.

Asked only where an attribute is missing, so that the error says what to write instead.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from burnish.errors import ArgumentError


class Fixed:
    """A property or a method that is read; what assigns to it is told what to write."""

    def __init__(self, read: Any, instead: str):
        self.read, self.instead, self.__doc__ = read, instead, read.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self.read.__get__(owner, kind)

    def __set__(self, owner: Any, value: Any) -> NoReturn:
        raise AttributeError(
            f"{type(owner).__name__}.{self.name} is not assigned; write {self.instead}"
        )


class Count(int):
    """The number of a module's parameters; a call says that it is no method."""

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise ArgumentError(
            "num_params: expected no call, it is a number; write model.num_params"
        )


class Size(int):
    """The number of elements; a call, PyTorch's `x.size()`, says where the shape is.

    NumPy sees a plain integer, which widens no dtype; so do operators.
    """

    def __call__(self, axis: int | None = None, dim: int | None = None) -> NoReturn:
        axis = dim if axis is None else axis
        instead = "x.shape" if axis is None else f"x.shape[{axis}]"
        raise ArgumentError(
            f"size: expected no call, it is the number of elements as in NumPy; "
            f"write {instead}"
        )

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **options: Any
    ) -> Any:
        plain = (int(x) if isinstance(x, Size) else x for x in inputs)
        return getattr(ufunc, method)(*plain, **options)


class TensorModule(ModuleType):
    """`burnish.tensor`; a call, PyTorch's `torch.tensor(data)`, says what makes one."""

    def __call__(self, *data: Any, **options: Any) -> NoReturn:
        raise ArgumentError("burnish.tensor: expected no call; write Tensor(data)")


_METHODS = {
    **dict.fromkeys(("view", "view_as", "reshape_as"), "x.reshape(2, -1)"),
    **dict.fromkeys(("cuda", "xpu"), 'x.to("cuda")'),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), "x.clip(min=0, max=1)"),
    **dict.fromkeys(("dim", "ndimension"), "x.ndim"),
    **dict.fromkeys(("numel", "nelement"), "x.size"),
    **dict.fromkeys(
        ("gather", "index_select"),
        "x.take(indices, axis=1) for slices, "
        "x.gather_elements(indices, axis=1) for single elements",
    ),
    **dict.fromkeys(
        ("scatter", "scatter_add", "scatter_reduce"),
        "x.scatter_elements(indices, updates, axis=1)",
    ),
    **dict.fromkeys(("mm", "bmm", "mv"), "x @ y"),
    **dict.fromkeys(
        ("index_put", "index_fill", "index_add", "index_copy"),
        "x.set_item(index, values)",
    ),
    **dict.fromkeys(("cummax", "cummin"), "x.cum_max(1), which gives values alone"),
    **dict.fromkeys(("register_hook", "retain_grad"), "tensor.grad(loss.backward())"),
    **dict.fromkeys(("zero_", "fill_"), "x = Tensor.full(x.shape, 0.0)"),
    **dict.fromkeys(
        ("uniform_", "normal_"), "x = Tensor.rand(2, 3), Tensor.randn(2, 3)"
    ),
    "requires_grad_": "x = x.require_grad()",
    "copy_": "x = y",
    "cpu": 'x.to("cpu")',
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "neg": "-x",
    "eq": "x == y",
    "ne": "x != y",
    "lt": "x < y",
    "le": "x <= y",
    "gt": "x > y",
    "ge": "x >= y",
    "remainder": "x % y",
    "repeat": "x.tile(2, 1), which PyTorch's repeat is; NumPy's is ops.take",
    "masked_select": "x[mask]",
    "contiguous": "x as it is: memory layout is no concern here",
    "expand_as": "x.expand(y.shape)",
    "broadcast_to": "x.expand(shape)",
    "type": 'x.dtype, or x.astype("float32")',
    "type_as": "x.astype(y.dtype)",
    "is_cuda": "x.device",
    "get_device": "x.device",
    "new_zeros": "Tensor.zeros(2, 3), or x.zeros_like()",
    "new_ones": "Tensor.ones(2, 3), or x.ones_like()",
    "new_tensor": "Tensor(data)",
    "ravel": "x.flatten()",
    "copy": "x.clone()",
    "strides": "x.numpy().strides",
    "nbytes": "x.numpy().nbytes",
    "itemsize": "x.dtype.itemsize",
    "element_size": "x.dtype.itemsize",
    "amax": "x.max(axis=1)",
    "amin": "x.min(axis=1)",
    "nonzero": "x.argwhere(), or x.non_zero()",
    "topk": "x.top_k(5)",
    "unique": "ops.unique_all(x), whose first result is the values",
    "where": "ops.where(condition, x, y)",
    "repeat_interleave": "x.take(indices, axis=0)",
    "as_strided": "x.reshape(...), x.unfold(...) or x.numpy().strides",
    **dict.fromkeys(("stride", "storage", "data_ptr", "layout"), "x.numpy()"),
    **dict.fromkeys(("storage_offset", "untyped_storage"), "x.numpy()"),
    **dict.fromkeys(("is_cpu", "is_mps", "is_xpu", "is_meta"), "x.device"),
    **dict.fromkeys(("grad_fn", "retains_grad", "grad_dtype"), "x.requires_grad"),
    **dict.fromkeys(
        ("values", "indices"), "x.max(axis=1) for values, x.argmax(axis=1) for places"
    ),
    **{
        name: f'x.astype("{dtype}")'
        for name, dtype in (
            *(("bfloat16", "bfloat16"), ("byte", "uint8"), ("char", "int8")),
            ("short", "int16"),
        )
    },
    **dict.fromkeys(("absolute", "fabs"), "abs(x)"),
    **dict.fromkeys(("multiply",), "x * y"),
    **dict.fromkeys(("divide", "true_divide"), "x / y"),
    "subtract": "x - y",
    "negative": "-x",
    "positive": "x",
    "floor_divide": "x // y",
    "float_power": "x ** y",
    "greater_equal": "x >= y",
    "less_equal": "x <= y",
    "fix": "x.trunc()",
    "fmax": "ops.maximum(x, y)",
    "fmin": "ops.minimum(x, y)",
    "exp2": "2.0 ** x",
    "log2": "x.log() / np.log(2)",
    "logit": "(x / (1 - x)).log()",
    "logaddexp": "(x.exp() + y.exp()).log()",
    "xlogy": "x * y.log()",
    "erfc": "1 - ops.erf(x)",
    "addcmul": "x + value * a * b",
    "addcdiv": "x + value * a / b",
    **dict.fromkeys(("addbmm", "addmv"), "x + a @ b"),
    **dict.fromkeys(("addr", "ger"), "a.unsqueeze(1) * b"),
    "diff": "x[1:] - x[:-1]",
    "dist": "(x - y).norm()",
    "aminmax": "x.min(axis=1), x.max(axis=1)",
    "select": "x[:, 0]",
    "narrow_copy": "x[:, 1:3]",
    "swapdims": "x.swapaxes(0, 1)",
    "fliplr": "x.flip(1)",
    "flipud": "x.flip(0)",
    **dict.fromkeys(
        ("tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes"),
        "x.split([1, 2], axis=1)",
    ),
    **dict.fromkeys(("new_empty", "new_full"), "Tensor.full((2, 3), 0.0)"),
    "bernoulli": "Tensor.rand(2, 3) < x",
    "is_nonzero": "bool(x)",
    "is_complex": "nothing: no tensor is complex",
    **dict.fromkeys(("real", "conj", "resolve_conj"), "x: no tensor is complex"),
    **dict.fromkeys(("imag", "angle"), "nothing: no tensor is complex"),
    "is_signed": 'x.dtype.kind != "u"',
    "is_same_size": "x.shape == y.shape",
    "is_quantized": "isinstance(x, QuantizedTensor) of burnish.quantization",
    **dict.fromkeys(("nansum", "nanmean"), "ops.where(x.is_nan(), 0.0, x).sum()"),
    "nanmedian": "np.nanmedian(x.numpy())",
    **dict.fromkeys(("kthvalue", "mode"), "x.sort(axis=1), of which a place is taken"),
    **dict.fromkeys(("put", "masked_scatter"), "x.set_item(index, values)"),
    "matrix_power": "x @ x",
    **dict.fromkeys(
        ("svd", "eig", "lstsq", "cholesky", "slogdet", "logdet", "geqrf"),
        "numpy.linalg on x.numpy()",
    ),
    "unique_consecutive": "ops.unique_all(x), whose first result is the values",
    "renorm": "x / x.norm(axis=1, keepdims=True)",
    "resize": "x.reshape(2, -1)",
    "msort": "x.sort(axis=0)",
    "to_dense": "nothing: every tensor is dense",
    "to_sparse": "nothing: every tensor is dense",
    "is_contiguous": "nothing: memory layout is no concern here",
    "is_leaf": "x.requires_grad",
    "train": "model.train(), which a module has",
    "fft": "ops.rfft(x), ops.dft(x)",
    "rfft": "ops.rfft(x)",
    "irfft": "ops.irfft(x)",
    **dict.fromkeys(("cat", "concat"), "ops.concat([x, y], axis=0)"),
    "stack": "ops.stack([x, y], axis=0)",
    "quantile": "x.sort(axis=1), of which a place is taken, "
    "or np.quantile(x.numpy(), q)",
    "percentile": "np.percentile(x.numpy(), q)",
    **dict.fromkeys(("bincount", "histc"), "np.bincount(x.numpy()), or np.histogram"),
    "is_floating_point": 'x.dtype.kind == "f"',
    "count_nonzero": "(x != 0).sum()",
    "log10": "x.log() / np.log(10)",
    "rsqrt": "1 / x.sqrt()",
    "lerp": "x + weight * (y - x)",
    "frac": "x - x.trunc()",
    "addmm": "x + a @ b",
    "baddbmm": "x + a @ b",
    "movedim": "x.moveaxis(0, 1)",
    "unflatten": "x.reshape(2, 3, -1)",
    "nan_to_num": "ops.where(x.is_nan(), 0.0, x)",
    "pin_memory": "nothing: copies to a device need no pinned memory",
    "is_sparse": "nothing: every tensor is dense",
    "rot90": "x.flip(0).swapaxes(0, 1)",
}

_FUNCTIONS = {
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
    "quantile": "ops.sort(x, axis=1), of which a place is taken, "
    "or np.quantile(x.numpy(), q)",
    "log10": "ops.log(x) / np.log(10)",
    "rsqrt": "1 / ops.sqrt(x)",
    "resize": "ops.interpolate(x, size=(8, 8))",
    "pixel_shuffle": "nn.PixelShuffle(2)(x)",
    "repeat_interleave": "ops.take(x, indices, axis=0)",
}

_MODULES = {
    "eval": "model.valid(), a copy for inference; train() gives one for training",
    "zero_grad": "nothing: gradients are what loss.backward() returns, none are kept",
    "cuda": 'model.to("cuda")',
    "cpu": 'model.to("cpu")',
    "half": "model.map(lambda path, tensor: tensor.half())",
    "bfloat16": 'model.map(lambda path, tensor: tensor.astype("bfloat16"))',
    "float": "model.map(lambda path, tensor: tensor.float())",
    "double": "model.map(lambda path, tensor: tensor.double())",
    "type": "model.map(lambda path, tensor: tensor.astype(dtype))",
    "requires_grad_": "model.freeze() or model.unfreeze()",
    "register_buffer": "self.name = nn.Buffer(values)",
    "register_parameter": "self.name = nn.Param(values), or replace(name, param)",
    "register_module": "self.name = module",
    "add_module": "self.name = module",
    "register_forward_hook": "a subclass whose forward calls super().forward(x)",
    "modules": "(module for _, module in model.named_modules())",
    "children": "(child for _, child in model.named_children())",
    "buffers": "(buffer for _, buffer in model.named_buffers())",
    "apply": "model.map(function) for tensors, model.named_modules() for modules",
    "share_memory": "model.fork(device), whose copies share arrays",
    "compile": "capture(model, x) of burnish.capture",
    "get_parameter": "dict(model.named_parameters())[path]",
    "get_buffer": "dict(model.named_buffers())[path]",
    "set_submodule": "model.replace(name, module)",
    "dtype": "model.parameters()[0].dtype",
    "weights": "model.state_dict()",
    "save": 'model.save_file("model.safetensors")',
    "load": 'Model.from_file("model.safetensors")',
    "summary": "print(model), or burnish.profile(model, x)",
    "predict": "model.valid()(x)",
    "fit": "Learner(...) of burnish.learner",
    "backward": "loss.backward(): a tensor has it",
    "xpu": 'model.to("cuda")',
    **dict.fromkeys(
        (
            *("register_forward_pre_hook", "register_backward_hook"),
            *("register_full_backward_hook", "register_full_backward_pre_hook"),
        ),
        "a subclass whose forward calls super().forward(x)",
    ),
    "get_submodule": "dict(model.named_modules())[path]",
}

_OPTIMIZERS = {
    "zero_grad": "nothing: gradients are what loss.backward() returns, none are kept",
    "state": "optimizer.state_dict()",
    "defaults": "vars(optimizer)",
    "param_groups": "optim.ModuleOptimizer, with rates by ModuleSchedule",
    **dict.fromkeys(
        ("lr", "learning_rate"), "optimizer.step(1e-3, ...): the rate is for each step"
    ),
    "add_param_group": "optim.ModuleOptimizer(...).with_group(group, rule)",
}

_LAYERS = {
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

_SCHEDULES = {
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

_RULES = {
    "lr_scheduler": "rate = optim.Cosine(1e-3, 100), then optimizer.step(rate.step(), "
    "model, gradients)",
    **{
        name: f"rate = optim.{made}, then optimizer.step(rate.step(), model, gradients)"
        for name, made in _SCHEDULES.items()
    },
    **dict.fromkeys(
        ("clip_grad_norm_", "clip_grad_norm"),
        "optim.SGD(clip=optim.ClipGlobalNorm(1.0))",
    ),
}

_DATA = {
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

_STARTS = {
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

_PACKAGE = {
    **{
        name: f"from burnish import {name}"
        for name in (
            "optim",
            "data",
            "learner",
            "generation",
            "training",
            "quantization",
            "store",
        )
    },
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

_MEANT = {
    "Tensor": _METHODS,
    "burnish.ops": _FUNCTIONS,
    "Module": _MODULES,
    "Optimizer": _OPTIMIZERS,
    "burnish.nn": _LAYERS,
    "burnish.nn.init": _STARTS,
    "burnish.optim": _RULES,
    "burnish.data": _DATA,
    "burnish": {**_FUNCTIONS, **_PACKAGE},
}


_ELSEWHERE = {
    "Tensor": ("ops",),
    "burnish": ("ops", "nn", "optim", "data"),
    "burnish.ops": ("nn",),
    "burnish.nn": ("ops", "optim", "data"),
    "burnish.optim": ("nn",),
}
"""The packages whose public names are looked for in another place, best first."""


def missing(owner: str, name: str, known: Any, kind: str = "") -> AttributeError:
    """The error for an attribute that `owner` lacks, with what to write instead.

    owner: "Tensor", "Module", "Optimizer" or a package; known: the names that it has;
    kind: what to call it.
    """
    table = _MEANT[owner]
    told = f"{kind or owner} has no {name!r}"
    if name.startswith("__"):
        return AttributeError(told)
    plain = name.rstrip("_")
    if owner == "Tensor" and plain != name:
        same = f"x = x.{plain}(...)" if plain in known else "x = another tensor"
        instead = table.get(name) or table.get(plain) or same
        return AttributeError(f"{told}: tensors never change in place; write {instead}")
    if meant := table.get(name):
        return AttributeError(f"{told}: write {meant}")
    for package in _ELSEWHERE.get(owner, ()):
        if name in import_module(f"burnish.{package}").__all__:
            call = f"{package}.{name}(x)" if owner == "Tensor" else f"{package}.{name}"
            return AttributeError(f"{told}: write {call}")
    if close := _close(name, known):
        return AttributeError(f"{told}; did you mean {close!r}?")
    return AttributeError(told)


def _close(name: str, known: Any) -> str | None:
    """The known name that `name` looks like, if there is one."""
    import difflib

    squeezed = {each.replace("_", "").lower(): each for each in known}
    alike = squeezed.get(name.replace("_", "").lower())
    found = [alike] if alike else difflib.get_close_matches(name, known, 1, 0.8)
    return next(iter(found), None)
