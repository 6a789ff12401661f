"""Models of node classification and of graph classification.

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


#: Name of a model of whole graphs → where its class is.
GRAPH_MODELS: dict[str, str] = {
    "gin": "fgl_core.models.gin:GIN",
    "star": "fgl_core.models.star:Star",
}


def build_graph_model(
    name: str,
    in_features: int,
    hidden: int,
    num_classes: int,
    *,
    norm: str,
    share_norm: bool,
    dropout: float,
    generator: torch.Generator,
    dtype: torch.dtype,
) -> nn.Module:
    """A fresh model of graphs; ``model(batch, dropout=None)`` gives ``(h [g, hidden], z [g, num_classes])``.

    Its ``local_modules`` are the beginnings of the names of tensors that never travel.

    Args:
        name: in :data:`GRAPH_MODELS`.
        norm: normalisation before the activations: ``none``, ``batch`` or ``pf``.
        share_norm: whether the normalisation travels with the shared tensors.

    The other arguments are as in :func:`build_model`.

    Raises:
        InputError: unknown model or normalisation.
    """
    if name not in GRAPH_MODELS:
        raise unknown("graph model", name, GRAPH_MODELS)
    module, class_name = GRAPH_MODELS[name].split(":")
    model = getattr(import_module(module), class_name)
    return model(
        in_features,
        hidden,
        num_classes,
        norm=norm,
        share_norm=share_norm,
        dropout=dropout,
        generator=generator,
        dtype=dtype,
    )
