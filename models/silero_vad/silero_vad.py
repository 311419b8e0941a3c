"""input, sr, state -> output, stateN

Imported from silero_vad_op18_ifless.onnx (opset 18), sha256
7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28;
weights in silero_vad.safetensors; options: --name silero_vad.
"""

from burnish import nn, ops


class Model(nn.Module):
    def __init__(self):
        self.forward_basis_buffer = nn.Buffer(nn.init.zeros, (258, 1, 256))
        self.reparam_conv = nn.Conv1d(129, 128, 3, padding=1)
        self.reparam_conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.reparam_conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.reparam_conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.rnn = nn.Linear(128, 512)
        self.rnn2 = nn.Linear(128, 512)
        self.conv1 = nn.Conv1d(128, 1, 1)
        self.forward_basis_buffer2 = nn.Buffer(nn.init.zeros, (130, 1, 128))
        self.reparam_conv5 = nn.Conv1d(65, 128, 3, padding=1)
        self.reparam_conv6 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.reparam_conv7 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.reparam_conv8 = nn.Conv1d(64, 128, 3, padding=1)
        self.rnn3 = nn.Linear(128, 512)
        self.rnn4 = nn.Linear(128, 512)
        self.conv2 = nn.Conv1d(128, 1, 1)

    @nn.accepts(
        input="float32[batch, sequence]", sr="int64[]", state="float32[2, batch, 128]"
    )
    def forward(self, input, sr, state):
        if sr.reshape(-1)[0] == 16000:
            y = ops.conv(
                ops.pad(input, pads=((0, 0), (0, 64)), mode="reflect").unsqueeze(1),
                self.forward_basis_buffer,
                stride=128,
            )
            y = ops.relu(self.reparam_conv(ops.sqrt(y[:, :129] ** 2 + y[:, 129:] ** 2)))
            y = self.reparam_conv3(ops.relu(self.reparam_conv2(y)))
            y = ops.relu(self.reparam_conv4(ops.relu(y)))[:, :, 0]
            y, z, u, v = ops.split(self.rnn(state[0]) + self.rnn2(y), num=4, axis=1)
            z = ops.sigmoid(z) * state[1] + ops.sigmoid(y) * ops.tanh(u)
            v = ops.sigmoid(v) * ops.tanh(z)
            y = self.conv1(ops.relu(v.unsqueeze(-1)))
            y = ops.sigmoid(y).squeeze(1).mean(1)
            x, state_n = y.unsqueeze(1), ops.concat(v.unsqueeze(0), z.unsqueeze(0))
        else:
            y = ops.conv(
                ops.pad(input, pads=((0, 0), (0, 32)), mode="reflect").unsqueeze(1),
                self.forward_basis_buffer2,
                stride=64,
            )
            y = ops.relu(self.reparam_conv5(ops.sqrt(y[:, :65] ** 2 + y[:, 65:] ** 2)))
            y = self.reparam_conv7(ops.relu(self.reparam_conv6(y)))
            y = ops.relu(self.reparam_conv8(ops.relu(y)))[:, :, 0]
            y, z, u, v = ops.split(self.rnn3(state[0]) + self.rnn4(y), num=4, axis=1)
            z = ops.sigmoid(z) * state[1] + ops.sigmoid(y) * ops.tanh(u)
            v = ops.sigmoid(v) * ops.tanh(z)
            y = self.conv2(ops.relu(v.unsqueeze(-1)))
            y = ops.sigmoid(y).squeeze(1).mean(1)
            x, state_n = y.unsqueeze(1), ops.concat(v.unsqueeze(0), z.unsqueeze(0))
        return x, state_n
