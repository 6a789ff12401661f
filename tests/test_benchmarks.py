"""The plain loop that the package is timed against does the same work."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from graphs import random_arrays

from fgl_core.losses import fgsd, fnsc
from fgl_core.models import build_model
from fgl_core.models.graph import Graph


def test_plain_loop_computes_the_same_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import plain

    x, edges = random_arrays(0, nodes=60)
    y, train = torch.arange(60) % 4, torch.arange(60) >= 4
    client = plain.PlainClient.from_arrays(x, edges, y.numpy(), train.numpy())
    graph = Graph.from_arrays(x, edges)
    outputs = []
    for seed in (0, 1):
        generator = torch.Generator().manual_seed(seed)
        ours = build_model("gat", 23, 16, 4, dropout=0.5, generator=generator, dtype=torch.float32)
        theirs = plain.PlainGAT(23, 16, 4).eval()
        for mine, layer in ((ours.encoder, theirs.encoder), (ours.classifier, theirs.classifier)):
            layer.load_state_dict(
                {
                    "lin.weight": mine.weight.T,
                    "att_src": mine.att_source[None, None],
                    "att_dst": mine.att_target[None, None],
                    "bias": mine.bias,
                }
            )
        h, z = ours(graph)
        torch.testing.assert_close((h, z), theirs(client.x, client.edge_index), rtol=1e-4, atol=1e-5)
        expected = torch.nn.functional.cross_entropy(z[train], y[train])
        torch.testing.assert_close(plain.cross_entropy(theirs, client), expected, rtol=1e-4, atol=1e-5)
        outputs.append((h, z))
    (h, z), (h_global, z_global) = outputs
    torch.testing.assert_close(
        plain.contrast(h[train], h_global[train], y[train], 0.1),
        fnsc(h[train], h_global[train], y[train], 0.1),
    )
    torch.testing.assert_close(
        plain.distillation(z, z_global, client.edge_index, 5.0), fgsd(z, z_global, graph, 5.0)
    )
