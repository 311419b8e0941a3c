"""input_ids, attention_mask, token_type_ids -> last_hidden_state

Imported from minilm.onnx (opset 23), sha256
0990a249061ff9d2b6c38015a3451207f1eb871f5e937ff9e96df1b24a60ebd6;
weights in minilm.safetensors.
"""

from burnish import nn, ops


class BertEmbeddings(nn.Module):
    """(batch, sequence), (batch, sequence) -> (batch, sequence, 384)"""

    def __init__(self):
        self.position_ids = nn.Buffer(nn.init.zeros, (1, 512), dtype="int64")
        self.word_embeddings = nn.Embedding(30522, 384)
        self.token_type_embeddings = nn.Embedding(2, 384)
        self.position_embeddings = nn.Embedding(512, 384)
        self.LayerNorm = nn.LayerNorm(384, eps=1e-12)

    def forward(self, input_ids, token_type_ids):
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.LayerNorm(
            x + self.position_embeddings(self.position_ids[:, : input_ids.shape[1]])
        )


class BertSelfAttention(nn.Module):
    """(batch, sequence, 384), (batch, 1, sequence, sequence)
    -> (batch, sequence, 384)
    """

    def __init__(self):
        self.query = nn.Linear(384, 384)
        self.key = nn.Linear(384, 384)
        self.value = nn.Linear(384, 384)

    def forward(self, x, mask):
        batch = x.shape[0]
        sequence = x.shape[1]
        query = self.query(x).reshape(batch, sequence, -1, 32).transpose(0, 2, 1, 3)
        key = self.key(x).reshape(batch, sequence, -1, 32).transpose(0, 2, 1, 3)
        x = self.value(x).reshape(batch, sequence, -1, 32).transpose(0, 2, 1, 3)
        x = ops.scaled_dot_product_attention(query, key, x, mask, scale=0.17677669)
        return x.transpose(0, 2, 1, 3).reshape(batch, sequence, -1)


class BertSelfOutput(nn.Module):
    """(batch, sequence, 384), (batch, sequence, 384) -> (batch, sequence, 384)"""

    def __init__(self):
        self.dense = nn.Linear(384, 384)
        self.LayerNorm = nn.LayerNorm(384, eps=1e-12)

    def forward(self, x, y):
        return self.LayerNorm(self.dense(x) + y)


class BertAttention(nn.Module):
    """(batch, sequence, 384), (batch, 1, sequence, sequence)
    -> (batch, sequence, 384)
    """

    def __init__(self):
        self.self = BertSelfAttention()
        self.output = BertSelfOutput()

    def forward(self, x, mask):
        return self.output(self.self(x, mask), x)


class BertIntermediate(nn.Module):
    """(batch, sequence, 384) -> (batch, sequence, 1536)"""

    def __init__(self):
        self.dense = nn.Linear(384, 1536)

    def forward(self, x):
        return ops.gelu(self.dense(x))


class BertOutput(nn.Module):
    """(batch, sequence, 1536), (batch, sequence, 384) -> (batch, sequence, 384)"""

    def __init__(self):
        self.dense = nn.Linear(1536, 384)
        self.LayerNorm = nn.LayerNorm(384, eps=1e-12)

    def forward(self, x, y):
        return self.LayerNorm(self.dense(x) + y)


class BertLayer(nn.Module):
    """(batch, sequence, 384), (batch, 1, sequence, sequence)
    -> (batch, sequence, 384)
    """

    def __init__(self):
        self.attention = BertAttention()
        self.intermediate = BertIntermediate()
        self.output = BertOutput()

    def forward(self, x, mask):
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BertEncoder(nn.Module):
    """(batch, sequence, 384), (batch, 1, sequence, sequence)
    -> (batch, sequence, 384)
    """

    def __init__(self):
        self.layer = [BertLayer() for _ in range(6)]

    def forward(self, x, mask):
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Model(nn.Module):
    def __init__(self):
        self.embeddings = BertEmbeddings()
        self.encoder = BertEncoder()

    @nn.accepts(
        input_ids="int64[batch, sequence]",
        attention_mask="int64[batch, sequence]",
        token_type_ids="int64[batch, sequence]",
    )
    def forward(self, input_ids, attention_mask, token_type_ids):
        sequence = token_type_ids.shape[1]
        x = attention_mask.unsqueeze((1, 2)) > 0
        x = ops.expand(x, shape=(token_type_ids.shape[0], 1, sequence, sequence))
        return self.encoder(self.embeddings(input_ids, token_type_ids), x)
