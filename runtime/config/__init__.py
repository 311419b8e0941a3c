"""Configurations: dataclasses that save themselves, checked when they are read.

@dataclass
class MyModuleConfig(Config):
    d_model: int
    dropout: float = 0.1

    def init(self, device="cpu"):
        return MyModule(self.d_model, self.dropout).to(device)
"""

from burnish.config.config import Config
from burnish.config.reading import from_plain
from burnish.config.writing import to_plain

__all__ = ["Config", "from_plain", "to_plain"]
