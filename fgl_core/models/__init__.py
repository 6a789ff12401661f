"""Models of node classification: each maps a graph to embeddings and logits.

Importing this module does not import torch; building a model does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fgl_core.errors import unknown

if TYPE_CHECKING:
    import torch
    from torch import nn

#: Name of a backbone → where its class is.
BACKBONES: dict[str, str] = {
    "gat": "fgl_core.models.gat:GAT",
    "gcn": "fgl_core.models.gcn:GCN",
    "sage": "fgl_core.models.sage:GraphSAGE",
}


def build_model(
    backbone: str,
    in_features: int,
    hidden: int,
    num_classes: int,
    *,
    dropout: float,
    generator: torch.Generator,
    dtype: torch.dtype,
) -> nn.Module:
    """A fresh model; ``model(graph, dropout=None)`` gives ``(h [n, hidden], z [n, num_classes])``.

    Args:
        backbone: a name in :data:`BACKBONES`.
        in_features: feature columns of the graphs it will see.
        hidden: width of the hidden layer.
        num_classes: width of the logits.
        dropout: rate on the activated hidden layer, in [0, 1).
        generator: draws the initial parameters; the global random state is never used.
        dtype: of the parameters; the graphs must have the same.

    Raises:
        InputError: unknown backbone.
    """
    if backbone not in BACKBONES:
        raise unknown("backbone", backbone, BACKBONES)
    module, name = BACKBONES[backbone].split(":")
    model = getattr(import_module(module), name)
    return model(in_features, hidden, num_classes, dropout=dropout, generator=generator, dtype=dtype)
