"""input -> output

Imported from attacut-sc.onnx (opset 18), sha256
1dd786d508c82371a320d8e20c47a584d9fb517802e0e0df5dad53bf907af465;
weights in attacut.safetensors; options: --name attacut.
"""

from burnish import nn, ops


class ConvolutionBatchNorm(nn.Module):
    """(1, 48, seq_len) -> (1, 64, seq_len)"""

    def __init__(self, kernel_size, padding, dilation=1):
        self.conv = nn.Conv1d(48, 64, kernel_size, padding=padding, dilation=dilation)

    def forward(self, x):
        return self.conv(x)


class Network(nn.Module):
    """(1, 2, seq_len) -> (seq_len,)"""

    def __init__(self, vocab):
        self.ch_embeddings = nn.Embedding(139, 32)
        self.sy_embeddings = nn.Embedding(vocab, 16)
        self.conv1 = ConvolutionBatchNorm(3, 1)
        self.conv2 = ConvolutionBatchNorm(5, 6, dilation=3)
        self.conv3 = ConvolutionBatchNorm(9, 8, dilation=2)
        self.linear1 = nn.Linear(64, 32)
        self.linear2 = nn.Linear(32, 1)

    def forward(self, x):
        y = self.ch_embeddings(x[:, 0])
        x = ops.concat(y, self.sy_embeddings(x[:, 1]), axis=-1).mT
        y = self.conv1(x).mT
        y = ops.stack(y, self.conv2(x).mT, self.conv3(x).mT, axis=-1).max(3)
        y = self.linear2(ops.relu(self.linear1(y)))
        return y.reshape(-1)


class Model(nn.Module):
    def __init__(self, vocab=6227):
        self.model = Network(vocab)

    @nn.accepts(input="int64[1, 2, seq_len]")
    def forward(self, input):
        return self.model(input)
