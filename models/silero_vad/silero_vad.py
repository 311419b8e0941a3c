"""input, sr, state -> output, stateN

Imported from silero_vad_op18_ifless.onnx (opset 18), sha256
7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28;
weights in silero_vad.safetensors; options: --name silero_vad.
"""

from burnish import nn, ops


class Network(nn.Module):
    """(batch, sequence), (2, batch, 128) -> (batch, 1), (2, batch, 128)"""

    def __init__(self, size, in_channels, padding, stride):
        self.in_channels = in_channels
        self.padding = padding
        self.stride = stride
        self.forward_basis_buffer = nn.Buffer(nn.init.zeros, (2 * in_channels, 1, size))
        self.reparam_conv = nn.Conv1d(in_channels, 128, 3, padding=1)
        self.reparam_conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.reparam_conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.reparam_conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.rnn = nn.Linear(128, 512)
        self.rnn2 = nn.Linear(128, 512)
        self.conv = nn.Conv1d(128, 1, 1)

    def forward(self, input, state):
        x = ops.pad(input, pads=((0, 0), (0, self.padding)), mode="reflect")
        x = ops.conv(x.unsqueeze(1), self.forward_basis_buffer, stride=self.stride)
        x = x[:, : self.in_channels] ** 2 + x[:, self.in_channels :] ** 2
        x = ops.relu(self.reparam_conv(ops.sqrt(x)))
        x = self.reparam_conv3(ops.relu(self.reparam_conv2(x)))
        x = ops.relu(self.reparam_conv4(ops.relu(x)))[:, :, 0]
        x, y, z, u = ops.split(self.rnn(state[0]) + self.rnn2(x), num=4, axis=1)
        x = ops.sigmoid(y) * state[1] + ops.sigmoid(x) * ops.tanh(z)
        u = ops.sigmoid(u) * ops.tanh(x)
        y = self.conv(ops.relu(u.unsqueeze(-1)))
        y = ops.sigmoid(y).squeeze(1).mean(1)
        return y.unsqueeze(1), ops.stack(u, x)


class Model(nn.Module):
    def __init__(self):
        self.model = Network(256, 129, 64, 128)
        self.model_8k = Network(128, 65, 32, 64)

    @nn.accepts(
        input="float32[batch, sequence]", sr="int64[]", state="float32[2, batch, 128]"
    )
    def forward(self, input, sr, state):
        if sr.reshape(-1)[0] == 16000:
            x, state_n = self.model(input, state)
        else:
            x, state_n = self.model_8k(input, state)
        return x, state_n
