"""How far the clients' models and graphs are apart (FGSSL, Fig. 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fgl_core.analysis.awe import pairwise_js_distance, walk_distribution
from fgl_core.analysis.cka import pairwise_cka
from fgl_core.datasets import load_node_dataset
from fgl_core.errors import InputError
from fgl_core.models.graph import Graph
from fgl_core.streams import Streams
from fgl_core.study.setup import Setup
from fgl_core.study.spec import HeterogeneitySpec


class Heterogeneity:
    """Watches a run: pass :meth:`compare` as ``on_trained``, and read :meth:`result` when it has ended.

    Models are compared by linear CKA of their representations of the same input: the test nodes of all
    clients in the whole graph, after local training and before aggregation (after it all models are equal).
    Graphs are compared by the Jensen–Shannon distance of their anonymous walks.
    """

    def __init__(
        self, spec: HeterogeneitySpec, setup: Setup, dtype: torch.dtype, device: torch.device
    ) -> None:
        dataset = load_node_dataset(
            spec.dataset, features=spec.features, keep_unlabelled=spec.keep_unlabelled
        )
        self._spec, self._setup = spec, setup
        self._graph = Graph.from_arrays(dataset.x, dataset.edges, dtype=dtype, device=device)
        self._test = torch.from_numpy(
            np.sort(np.concatenate([c.nodes[c.test.cpu().numpy()] for c in setup.clients]))
        )
        self._rounds: list[int] = []
        self._means: list[float] = []
        self._matrix = np.empty((0, 0))

    @torch.no_grad()
    def compare(self, number: int, models: list[torch.nn.Module]) -> None:
        """Note how alike the models are, if this round is one to look at."""
        if number % self._spec.every and number != self._spec.rounds:
            return
        outputs = []
        for model in models:
            hidden, logits = model.eval()(self._graph)
            chosen = logits if self._spec.representation == "output" else hidden
            outputs.append(chosen[self._test].cpu().numpy())
        self._matrix = pairwise_cka(outputs)
        above = np.triu_indices(len(models), k=1)
        self._rounds.append(number)
        self._means.append(round(float(self._matrix[above].mean()), 5))

    def result(self) -> dict[str, Any]:
        """For the record: rounds looked at, mean CKA over pairs in each, and both matrices at the end.

        A client whose graph has no edge has no walks: its row and column of ``js_distance`` are null.
        """
        streams, distributions = Streams(self._spec.seed), []
        for client in self._setup.clients:
            try:
                distributions.append(
                    walk_distribution(
                        client.graph.undirected_edges,
                        client.graph.num_nodes,
                        self._spec.walk_length,
                        self._spec.walks,
                        streams.numpy("walks", client.name),
                    )
                )
            except InputError:
                distributions.append(None)
        return {
            "rounds": self._rounds,
            "mean_cka": self._means,
            "cka": np.round(self._matrix, 4).tolist(),
            "js_distance": _with_gaps(distributions),
        }


def _with_gaps(distributions: list[np.ndarray | None]) -> list[list[float | None]]:
    known = [index for index, shares in enumerate(distributions) if shares is not None]
    distances = pairwise_js_distance([distributions[index] for index in known])
    matrix: list[list[float | None]] = [[None] * len(distributions) for _ in distributions]
    for row, i in enumerate(known):
        for column, j in enumerate(known):
            matrix[i][j] = round(float(distances[row, column]), 4)
    return matrix
