"""Replacements for the methods of PyTorch's modules and optimizers."""

from __future__ import annotations

MODULES = {
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

OPTIMIZERS = {
    "zero_grad": "nothing: gradients are what loss.backward() returns, none are kept",
    "state": "optimizer.state_dict()",
    "defaults": "vars(optimizer)",
    "param_groups": "optim.ModuleOptimizer, with rates by ModuleSchedule",
    **dict.fromkeys(
        ("lr", "learning_rate"), "optimizer.step(1e-3, ...): the rate is for each step"
    ),
    "add_param_group": "optim.ModuleOptimizer(...).with_group(group, rule)",
}
