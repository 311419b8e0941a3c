"""input_ids, attention_mask, token_type_ids -> last_hidden_state

Imported from minilm.onnx (opset 23), sha256
0990a249061ff9d2b6c38015a3451207f1eb871f5e937ff9e96df1b24a60ebd6;
weights in minilm.safetensors.
"""

from burnish import nn, ops


class BertEmbeddings(nn.Module):
    """(batch, sequence), (batch, sequence) -> (batch, sequence, dim)"""

    def __init__(self, dim, vocab, positions):
        self.position_ids = nn.Buffer(nn.init.arange, (1, positions), dtype="int64")
        self.word_embeddings = nn.Embedding(vocab, dim)
        self.token_type_embeddings = nn.Embedding(2, dim)
        self.position_embeddings = nn.Embedding(positions, dim)
        self.LayerNorm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, input_ids, token_type_ids):
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.LayerNorm(
            x + self.position_embeddings(self.position_ids[:, : input_ids.shape[1]])
        )


class BertSelfAttention(nn.Module):
    """(batch, sequence, dim), (batch, 1, 1, sequence) -> (batch, sequence, dim)"""

    def __init__(self, dim, heads):
        self.heads = heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)

    def forward(self, x, mask):
        batch, sequence, _ = x.shape
        q = self.query(x).reshape(batch, sequence, self.heads, -1).transpose(0, 2, 1, 3)
        k = self.key(x).reshape(batch, sequence, self.heads, -1).transpose(0, 2, 1, 3)
        v = self.value(x).reshape(batch, sequence, self.heads, -1).transpose(0, 2, 1, 3)
        x = ops.scaled_dot_product_attention(q, k, v, mask=mask)
        return x.transpose(0, 2, 1, 3).reshape(batch, sequence, -1)


class BertSelfOutput(nn.Module):
    """(batch, sequence, dim), (batch, sequence, dim) -> (batch, sequence, dim)"""

    def __init__(self, dim):
        self.dense = nn.Linear(dim, dim)
        self.LayerNorm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class BertAttention(nn.Module):
    """(batch, sequence, dim), (batch, 1, 1, sequence) -> (batch, sequence, dim)"""

    def __init__(self, dim, heads):
        self.self = BertSelfAttention(dim, heads)
        self.output = BertSelfOutput(dim)

    def forward(self, x, mask):
        return self.output(self.self(x, mask), x)


class BertIntermediate(nn.Module):
    """(batch, sequence, dim) -> (batch, sequence, hidden)"""

    def __init__(self, dim, hidden):
        self.dense = nn.Linear(dim, hidden)

    def forward(self, x):
        return ops.gelu(self.dense(x))


class BertOutput(nn.Module):
    """(batch, sequence, hidden), (batch, sequence, dim) -> (batch, sequence, dim)"""

    def __init__(self, dim, hidden):
        self.dense = nn.Linear(hidden, dim)
        self.LayerNorm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class BertLayer(nn.Module):
    """(batch, sequence, dim), (batch, 1, 1, sequence) -> (batch, sequence, dim)"""

    def __init__(self, dim, heads, hidden):
        self.attention = BertAttention(dim, heads)
        self.intermediate = BertIntermediate(dim, hidden)
        self.output = BertOutput(dim, hidden)

    def forward(self, x, mask):
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):
    """(batch, sequence, dim), (batch, 1, 1, sequence) -> (batch, sequence, dim)"""

    def __init__(self, dim, depth, heads, hidden):
        self.layer = [BertLayer(dim, heads, hidden) for _ in range(depth)]

    def forward(self, x, mask):
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Model(nn.Module):
    """dim features, depth layers, heads of attention, hidden features between, vocab
    words, positions at most
    """

    def __init__(
        self, dim=384, depth=6, heads=12, hidden=1536, vocab=30522, positions=512
    ):
        if dim % heads:
            raise ValueError(f"heads={heads} does not divide dim={dim}")
        self.embeddings = BertEmbeddings(dim, vocab, positions)
        self.encoder = BertEncoder(dim, depth, heads, hidden)

    @nn.accepts(
        input_ids="int64[batch, sequence]",
        attention_mask="int64[batch, sequence]",
        token_type_ids="int64[batch, sequence]",
    )
    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.embeddings(input_ids, token_type_ids)
        return self.encoder(x, attention_mask.unsqueeze((1, 2)) > 0)
