"""FedCCH: clients whose models see their graphs alike are averaged together (Jiao et al., IJCAI 2025)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from fgl_core.methods.fedavg import FedAvg, parameter, weighted_mean

if TYPE_CHECKING:
    import torch

    from fgl_core.clients import Client
    from fgl_core.federation import Server, Update
    from fgl_core.study.spec import GraphSpec


class FedCCH(FedAvg):
    """Clusters by hash signatures, FedAvg within each; the personalisation factor PF stays local.

    After training, a client sends 64 bits with its model: the hash of the mean representation of its training
    graphs (eqs. 9 and 10). The server clusters the clients by how many bits they share (eqs. 11 and 12), and
    averages each cluster (eq. 13).
    """

    title: ClassVar[str] = "FedCCH"
    paper: ClassVar[str] = "jiao2025fedcch"
    tasks: ClassVar[tuple[str, ...]] = ("graph",)
    norm: ClassVar[Literal["none", "batch", "pf"]] = "pf"

    name: Literal["fedcch"] = "fedcch"
    signature: Literal["average", "perceptual", "difference", "wavelet", "cosine"] = parameter(
        "average",
        "hash of the mean representation; cosine sends and compares the representation itself",
        "stated, section 5.2; cosine: section 5.4",
    )
    clustering: Literal["average", "single", "complete", "kmeans", "random", "domain"] = parameter(
        "average",
        "linkage of the hierarchical clustering, or k-means; as controls random members in clusters of the"
        " sizes that average gives, or the datasets' domains",
        "hierarchical: stated, section 5.2; average linkage: decided",
    )
    clusters: int | None = parameter(None, "number of clusters; none: by silhouette", "decided", ge=1)
    cluster_every: int = parameter(
        1, "rounds from one clustering to the next; 0: only in the first", "decided", ge=0
    )
    unit_order: int = parameter(
        0, "0 leaves the 64 units in their order in the image; other numbers shuffle them", "decided", ge=0
    )

    def check(self, spec: GraphSpec) -> None:
        """What is hashed makes a square image; what is clustered by domain has one."""
        from fgl_core.datasets import domain
        from fgl_core.signature import image_side

        for name in spec.datasets if self.clustering == "domain" else ():
            domain(name)
        if self.signature != "cosine" and self.clustering != "domain":
            image_side(spec.hidden)

    def report(self, client: Client, model: torch.nn.Module) -> dict[str, np.ndarray]:
        """The signature, 64 bits in eight bytes; or what the similarity of a control needs."""
        from fgl_core.federation import Divergence
        from fgl_core.signature import signature

        if self.clustering == "domain":
            from fgl_core.datasets import DOMAINS, domain

            return {"domain": np.array([list(DOMAINS).index(domain(client.dataset))], np.uint8)}
        vector = client.representations(model).double().mean(dim=0).cpu().numpy()
        if self.signature == "cosine":
            return {"representation": vector.astype(np.float32)}
        if self.unit_order:
            vector = np.random.default_rng(self.unit_order).permutation(vector)
        try:
            bits = signature(vector, self.signature)
        except ArithmeticError as error:
            raise Divergence(f"{client.name}: {error}") from error
        return {"signature": np.packbits(bits)}

    def aggregate(self, server: Server, updates: list[Update]) -> None:
        """Cluster the clients where it is due; every cluster gets its weighted mean (eq. 13)."""
        due = server.round == 1 or (self.cluster_every and (server.round - 1) % self.cluster_every == 0)
        if due:
            server.state["labels"] = self.cluster(server, updates)
        labels = server.state["labels"]
        for label in np.unique(labels):
            members = [update for update in updates if labels[update.client] == label]
            mean = weighted_mean(members)
            for update in members:
                server.outbox[update.client] = mean
        server.notes["clusters"] = labels.tolist()
        if "signature" in updates[0].report:
            # often at first, then seldom, so that a record of many clients stays small
            noted = server.round <= 10 or server.round % 10 == 0
            hexadecimal = [update.report["signature"].tobytes().hex() for update in updates]
            server.notes["signatures"] = hexadecimal if noted else None

    def cluster(self, server: Server, updates: list[Update]) -> np.ndarray:
        """Each client's cluster, int64 [m], from what the clients reported."""
        from fgl_core.signature import cluster, cosine_similarity, hash_similarity, in_order

        if self.clustering == "domain":
            return in_order(np.concatenate([update.report["domain"] for update in updates]))
        if self.signature == "cosine":
            similarity = cosine_similarity([update.report["representation"] for update in updates])
        else:
            packed = np.stack([update.report["signature"] for update in updates])
            similarity = hash_similarity(np.unpackbits(packed, axis=1))
        algorithm = "average" if self.clustering == "random" else self.clustering
        rng = server.streams.numpy("clusters", server.round)
        labels = cluster(
            similarity, algorithm=algorithm, clusters=self.clusters, seed=int(rng.integers(2**31))
        )
        return in_order(rng.permutation(labels)) if self.clustering == "random" else labels
