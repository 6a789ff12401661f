"""FedSage+: FedSage on graphs mended by a generator of missing neighbours (Zhang et al., NeurIPS 2021)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from fgl_core.methods.fedavg import parameter
from fgl_core.methods.fedsage import FedSage

if TYPE_CHECKING:
    import torch

    from fgl_core.clients import NodeClient
    from fgl_core.federation import Preparation
    from fgl_core.models.neighgen import Candidates, Impaired, NeighGen
    from fgl_core.streams import Streams

AUTHORS = "inferred, the authors' code"


class FedSagePlus(FedSage):
    """GraphSAGE, federated averaging, and a NeighGen per client that appends the neighbours it misses.

    Before the first round each client hides some of its nodes and trains its NeighGen to restore them, for
    ``generator_epochs`` full-batch steps of Adam on

        L = λ_d L_degree + λ_f (L_features + Σ_j L_features,j) + λ_c L_labels    (sections 4.2 and 4.3)

    L_degree is the smooth L1 distance between expected and hidden numbers of neighbours, L_features the
    distance of each generated neighbour to the nearest hidden neighbour of its node, L_labels the
    cross-entropy of a classifier on the mended graph, which is thrown away afterwards. L_features,j is the
    distance to the nearest node of another client j: a client sends its feature generator and the noisy
    embeddings of its nodes through the server to the others; each returns the gradient by the generator's
    parameters; the server adds them up. The term trains the feature generator only; features of real nodes
    do not travel, but what can be read from the gradients does. Then every client mends its whole graph once,
    and FedSage runs on these graphs.

    Decided by us: a client is evaluated on its own graph, not on the mended one. Hidden nodes are validation
    nodes, as in the authors' code, so that no label is lost. Features are also generated where a neighbour
    is truly hidden, not only where one is predicted, since predictions start near 0. Each generated neighbour
    has its own noise, which is how we read the paper's sampler (the authors' code has an output for each
    instead, which costs ``max_neighbours`` times the parameters and bytes). Squared distances are means over
    features. Local and cross-client terms are trained together; the authors' code trains the local ones
    first.
    """

    title: ClassVar[str] = "FedSage+"

    name: Literal["fedsage+"] = "fedsage+"
    hide_portion: float = parameter(
        0.5, "share of a client's validation nodes hidden to train the generator", AUTHORS, ge=0, le=1
    )
    max_neighbours: int = parameter(5, "most neighbours generated for one node", AUTHORS, ge=1, le=100)
    latent: int = parameter(128, "width of the generator's node embeddings", AUTHORS, ge=1, le=4096)
    generator_hidden: int = parameter(
        256,
        "hidden width of the feature generator",
        "decided; the authors' code adds a layer of 2048",
        ge=1,
        le=4096,
    )
    generator_dropout: float = parameter(0.5, "dropout while the generator is trained", AUTHORS, ge=0, lt=1)
    generator_epochs: int = parameter(20, "steps of generator training", AUTHORS, ge=0, le=10_000)
    generator_lr: float = parameter(0.001, "learning rate of the generator's Adam", AUTHORS, gt=0, le=1)
    generator_weight_decay: float = parameter(
        1e-4, "weight decay of the generator's Adam", AUTHORS, ge=0, le=1
    )
    degree_weight: float = parameter(1.0, "weight λ_d of the degree term", AUTHORS, ge=0)
    feature_weight: float = parameter(1.0, "weight λ_f of the feature terms", AUTHORS, ge=0)
    label_weight: float = parameter(1.0, "weight λ_c of the label term", AUTHORS, ge=0)

    def prepare(self, clients: list[NodeClient], streams: Streams) -> Preparation:
        """Train the generators together, mend every client's training graph, and count what travelled."""
        from fgl_core.federation import Preparation

        generators, up, down = self.train_generators(clients, streams)
        mended = [
            replace(
                client, graph=generator.mend(client.graph, streams.torch("neighgen mending", client.name))
            )
            for client, generator in zip(clients, generators, strict=True)
        ]
        return Preparation(mended, up, down)

    def train_generators(
        self, clients: list[NodeClient], streams: Streams
    ) -> tuple[list[NeighGen], dict[str, int], dict[str, int]]:
        """One NeighGen per client, and the bytes up and down by kind.

        Raises:
            Divergence: a generator's loss is not finite.
        """
        import torch

        from fgl_core.federation import Divergence
        from fgl_core.models.neighgen import Candidates

        real = [Candidates(client.graph.features.matrix) for client in clients]
        generators = [self._build(client, streams) for client in clients]
        impaired = [self._impair(client, streams) for client in clients]
        optimizers = [
            torch.optim.Adam(
                generator.parameters(),
                lr=self.generator_lr,
                weight_decay=self.generator_weight_decay,
                fused=True,
            )
            for generator in generators
        ]
        up, down = Counter(), Counter()
        for epoch in range(self.generator_epochs):
            for i, client in enumerate(clients):
                others = real[:i] + real[i + 1 :]
                loss, sent = self._loss(generators[i], impaired[i], client, others, streams, epoch)
                if not torch.isfinite(loss):
                    raise Divergence(f"the loss of the generator of {client.name} is {loss.item()}")
                optimizers[i].zero_grad(set_to_none=True)
                loss.backward()
                optimizers[i].step()
                if others and len(sent):
                    generator = sum(own.nbytes for own in generators[i].features.parameters())
                    messages = {"generator": generator, "node embeddings": sent.nbytes}
                    up.update(messages, **{"generator gradients": generator * len(others)})
                    down.update({kind: size * len(others) for kind, size in messages.items()})
                    down.update({"generator gradients": generator})
        return generators, dict(up), dict(down)

    def _build(self, client: NodeClient, streams: Streams) -> NeighGen:
        from fgl_core.models.neighgen import NeighGen

        return NeighGen(
            client.graph.num_features,
            client.num_classes,
            latent=self.latent,
            hidden=self.generator_hidden,
            most=self.max_neighbours,
            dropout=self.generator_dropout,
            generator=streams.torch("neighgen init", client.name),
            dtype=client.graph.dtype,
        ).to(client.graph.device)

    def _impair(self, client: NodeClient, streams: Streams) -> Impaired:
        import numpy as np

        from fgl_core.models.neighgen import impair

        candidates = client.val.cpu().numpy()
        share = round(self.hide_portion * len(candidates))
        rng = streams.numpy("neighgen hidden nodes", client.name)
        return impair(client.graph, np.sort(rng.choice(candidates, share, replace=False)))

    def _loss(
        self,
        generator: NeighGen,
        impaired: Impaired,
        client: NodeClient,
        others: list[Candidates],
        streams: Streams,
        epoch: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss of one step, and the noisy embeddings that the other clients see, [r, latent]."""
        import torch
        from torch.nn.functional import cross_entropy, smooth_l1_loss

        from fgl_core.models.neighgen import gaussian, reconstruction, repeated

        def stream(purpose: str) -> torch.Generator:
            return streams.torch(f"neighgen {purpose}", client.name, epoch)

        graph, visible, lost = impaired.graph, impaired.visible, impaired.degree
        embeddings, expected = generator.embed(graph, stream("dropout"))
        degree = smooth_l1_loss(expected[visible], lost[visible].to(expected.dtype))

        predicted = generator.counts(expected) * visible
        made = torch.maximum(predicted, lost.clamp(max=generator.most))
        owner = repeated(made)
        inputs = embeddings[owner] + gaussian(len(owner), embeddings, stream("noise"))
        generated = generator.features(inputs)

        known = (lost[owner] > 0).nonzero()[:, 0]
        features = reconstruction(
            generated[known], [impaired.hidden], impaired.missing[owner[known].cpu().numpy()]
        )
        # others return gradients of the generator's parameters only, hence detach; gradients add up, so that
        # one backward pass gives the sum the server would
        sent = inputs.detach()
        if others:
            features = features + reconstruction(generator.features(sent), others)

        rank = torch.arange(len(owner), device=owner.device) - (made.cumsum(0) - made)[owner]
        mended = (rank < predicted[owner]).nonzero()[:, 0]
        logits = generator.classify(graph, generated[mended], owner[mended], stream("label dropout"))
        labels = cross_entropy(logits[client.train], client.labels[client.train])

        return (
            self.degree_weight * degree
            + self.feature_weight * features / visible.sum()
            + self.label_weight * labels
        ), sent
