"""What students get wrong in the labs: by lab and task, the hint that they must get and their answer."""

from __future__ import annotations

from textwrap import dedent

FEDAVG = "fedavg-from-scratch"
NON_IID = "non-iid"
CONTRAST = "contrast"
DISTILLATION = "distillation"
HASH = "hash-and-clusters"

_TRAIN = """
def train(model, client, epochs, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        _, logits = model(client.graph)
        loss = cross_entropy(logits[client.train], client.labels[client.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_AVERAGE = """
def average(states, sizes):
    shares = SHARES
    return {n: sum(share * s[n] for share, s in zip(shares, states)) for n in states[0]}
"""
_ACCURACY = """
def accuracy(model, clients):
    hits = [(model(c.graph)[1].argmax(dim=1) == c.labels).float() for c in clients]
    return RESULT
"""
_SKEW = """
def label_skew(counts):
    sizes = counts.sum(axis=1)
    distance = np.abs(counts / sizes[:, None] - counts.sum(axis=0) / counts.sum()).sum(axis=1) / 2
    return RESULT
"""
_HOME = """
def home_and_away(models, clients):
    tables = [[client.evaluate(model)["test"] for client in clients] for model in models]
    table = np.array([[counts.trace() / counts.sum() for counts in row] for row in tables])
    return table
"""
_CONTRAST = """
def contrast(h_local, h_global, y, tau):
    log_share = log_shares(cosines(h_local, h_global.detach()), tau)
    same = y[:, None] == y[None, :]
    return -((log_share * same).sum(dim=1) / same.sum(dim=1)).mean()
"""
_SAFE = """
def safe_contrast(h_local, h_global, y, tau):
    anchor, sample = h_local.norm(dim=1) > 1e-6, h_global.norm(dim=1) > 1e-6
    log_share = log_shares(cosines(h_local[anchor], h_global[sample].detach()), tau)
    same = y[anchor][:, None] == y[sample][None, :]
    return -((log_share * same).sum(dim=1) / same.sum(dim=1)).mean()
"""
_DISTILLATION = """
def distillation(z_local, z_global, neighbours, omega):
    parts = []
    for i, near in enumerate(neighbours):
        if len(near):
            teacher = pattern(z_global.detach(), i, near, omega)
            parts.append(divergence(teacher, pattern(z_local, i, near, omega)))
    return torch.stack(parts).mean()
"""
_NEAREST = """
def nearest(groups, distance):
    pairs = combinations(range(len(groups)), 2)
    return min(pairs, key=lambda pair: distance[np.ix_(groups[pair[0]], groups[pair[1]])].mean())
"""
_GROUPS = """
def average_in_groups(states, sizes, groups):
    answers = []
    for own in groups:
        members = [client for client, group in enumerate(groups) if group == own]
        total = sum(sizes[client] for client in members)
        answers.append({n: sum(states[c][n] * sizes[c] for c in members) / total for n in states[0]})
    return answers
"""


def _function(head: str, body: str) -> str:
    return f"def {head}:\n    return {body}\n"


def _slip(right: str, part: str, wrong: str) -> str:
    """A right answer with one part of it wrong."""
    assert right.count(part) == 1, part
    return dedent(right.replace(part, wrong))


MISTAKES: dict[tuple[str, int], dict[str, str]] = {
    (FEDAVG, 1): {
        "no weight has moved": _slip(_TRAIN, "        optimizer.step()\n", ""),
        "client.train alone": _slip(
            _TRAIN, "logits[client.train], client.labels[client.train]", "logits, client.labels"
        ),
        "zero the gradients": _slip(_TRAIN, "        optimizer.zero_grad()\n", ""),
    },
    (FEDAVG, 2): {
        "count the same": _AVERAGE.replace("SHARES", "[1 / len(sizes)] * len(sizes)"),
        "divided by the sum": _AVERAGE.replace("SHARES", "[size / max(sizes) for size in sizes]"),
        "return a dictionary": _function("average(states, sizes)", "list(states[0].values())"),
    },
    (FEDAVG, 3): {
        "mean over clients": _ACCURACY.replace(
            "RESULT", "sum(h[c.test].mean() for h, c in zip(hits, clients)).item() / 5"
        ),
        "among client.test only": _ACCURACY.replace("RESULT", "torch.cat(hits).mean().item()"),
    },
    (FEDAVG, 4): {
        "as it was": "def one_round(model, clients, epochs, lr):\n"
        "    for client in clients:\n        train(deepcopy(model), client, epochs, lr)\n",
        "one after the other": "def one_round(model, clients, epochs, lr):\n"
        "    for client in clients:\n        train(model, client, epochs, lr)\n",
        "not the package's average": _function(
            "one_round(model, clients, epochs, lr)", "train(model, clients[0], epochs, lr)"
        ),
    },
    (FEDAVG, 5): {
        "one way": _function(
            "traffic(model, clients, rounds)",
            "len(clients) * rounds * sum(t.nbytes for t in model.state_dict().values())",
        ),
        "these are numbers": _function(
            "traffic(model, clients, rounds)",
            "2 * len(clients) * rounds * sum(t.numel() for t in model.state_dict().values())",
        ),
        "the package's ledger says": _function("traffic(model, clients, rounds)", "1e6"),
    },
    (NON_IID, 1): {
        "rows and columns are swapped": _function(
            "class_counts(y, owner)", "np.histogram2d(y, owner, (10, 5))[0].astype(int)"
        ),
        "counts once": "def class_counts(y, owner):\n    table = np.zeros((5, 10), dtype=int)\n"
        "    table[owner, y] += 1\n    return table\n",
        "the counts are off": _function("class_counts(y, owner)", "np.full((5, 10), 7)"),
    },
    (NON_IID, 2): {
        "half the sum": _SKEW.replace("RESULT", "np.average(2 * distance, weights=sizes)"),
        "by nodes": _SKEW.replace("RESULT", "distance.mean()"),
        "divide every row": _function("label_skew(counts)", "np.abs(counts - counts.mean(0)).sum() / 2"),
    },
    (NON_IID, 3): {
        "these are the links that stay": _function(
            "lost_links(edges, owner)", "(owner[edges[:, 0]] == owner[edges[:, 1]]).mean()"
        ),
        "return a share": _function(
            "lost_links(edges, owner)", "(owner[edges[:, 0]] != owner[edges[:, 1]]).sum()"
        ),
    },
    (NON_IID, 4): {
        "rows and columns are swapped": _slip(_HOME, "return table", "return table.T"),
        "these are counts": _slip(_HOME, "counts.trace() / counts.sum()", "counts.trace()"),
        "the diagonal must hold": _slip(_HOME, "for model in models", "for model in models[:1] * 5"),
        "off the diagonal": _slip(_HOME, "return table", "return np.diag(np.diag(table))"),
    },
    (CONTRAST, 1): {
        "dot products": _function("cosines(a, b)", "a @ b.T"),
        "each row has a norm": _function("cosines(a, b)", "(a / a.norm()) @ (b / b.norm()).T"),
        "every row with every row": _function(
            "cosines(a, b)", "torch.nn.functional.cosine_similarity(a[:5], b)"
        ),
    },
    (CONTRAST, 2): {
        "divide the cosines by tau": _function("log_shares(cosine, tau)", "cosine.log_softmax(dim=1)"),
        "dim=1": _function("log_shares(cosine, tau)", "(cosine / tau).log_softmax(dim=0)"),
        "no logarithms": _function("log_shares(cosine, tau)", "(cosine / tau).softmax(dim=1)"),
        "overflows": "def log_shares(cosine, tau):\n    e = (cosine / tau).exp()\n"
        "    return (e / e.sum(dim=1, keepdim=True)).log()\n",
    },
    (CONTRAST, 3): {
        "the local model judges itself": _slip(
            _CONTRAST, "cosines(h_local, h_global.detach())", "cosines(h_local, h_local)"
        ),
        "the roles are swapped": _slip(
            _CONTRAST, "cosines(h_local, h_global.detach())", "cosines(h_global.detach(), h_local)"
        ),
        "divide by the number of positives": _slip(
            _CONTRAST, "((log_share * same).sum(dim=1) / same.sum(dim=1))", "(log_share * same).sum(dim=1)"
        ),
        "mean over P_i": _slip(
            _CONTRAST, "((log_share * same).sum(dim=1) / same.sum(dim=1))", "(log_share * same)"
        ),
        "then over nodes": _slip(
            _CONTRAST, "((log_share * same).sum(dim=1) / same.sum(dim=1))", "log_share[same]"
        ),
        "i in it": _slip(
            _CONTRAST,
            "y[:, None] == y[None, :]",
            "(y[:, None] == y[None, :]) & ~torch.eye(len(y), dtype=torch.bool)",
        ),
        "return one number": _slip(_CONTRAST, ".mean()", ""),
        "detach it": _slip(_CONTRAST, ".detach()", ""),
        "mean over P_i, i in it": _slip(_CONTRAST, "-((log", "((log"),
    },
    (CONTRAST, 4): {
        "not finite": "safe_contrast = contrast\n",
        "one mask for both sides": _slip(
            _SAFE,
            "h_local.norm(dim=1) > 1e-6, h_global.norm(dim=1) > 1e-6",
            "[(h_local.norm(dim=1) > 1e-6) & (h_global.norm(dim=1) > 1e-6)] * 2",
        ),
        "29 anchors, not 30": _slip(_SAFE, ".mean()", ".sum() / len(y)"),
    },
    (CONTRAST, 5): {
        "this is the entropy": _function(
            "looked_at(log_share)", "-(log_share.exp() * log_share).sum(dim=1).mean().item()"
        ),
        "the mean after it": _function(
            "looked_at(log_share)", "(-(log_share.exp() * log_share).sum(dim=1)).mean().exp().item()"
        ),
        "mind the sign": _function(
            "looked_at(log_share)", "(log_share.exp() * log_share).sum(dim=1).exp().mean().item()"
        ),
    },
    (DISTILLATION, 1): {
        "a cosine": _function(
            "pattern(z, i, near, omega)",
            "torch.softmax(torch.nn.functional.cosine_similarity(z[near], z[i][None]) / omega, 0)",
        ),
        "by omega": _function("pattern(z, i, near, omega)", "torch.softmax(z[near] @ z[i], 0)"),
        "must sum to 1": _function("pattern(z, i, near, omega)", "(z[near] @ z[i] / omega).exp()"),
        "one share for each neighbour": _function(
            "pattern(z, i, near, omega)", "torch.softmax(z @ z[i] / omega, 0)"
        ),
    },
    (DISTILLATION, 2): {
        "the direction is wrong": _function(
            "divergence(teacher, student)", "(student * (student / teacher).log()).sum()"
        ),
        "the sign is wrong": _function(
            "divergence(teacher, student)", "(teacher * (student / teacher).log()).sum()"
        ),
        "it is 0.368": _function(
            "divergence(teacher, student)", "(teacher * (teacher / student).log()).mean()"
        ),
    },
    (DISTILLATION, 3): {
        "34 nodes, not 35": _slip(
            _DISTILLATION, "torch.stack(parts).mean()", "torch.stack(parts).sum() / len(neighbours)"
        ),
        "skip who has no neighbours": _slip(
            _DISTILLATION.replace("if len(near):", "if True:"), "omega)))", "omega)) / len(near))"
        ),
        "detach z_global": _slip(_DISTILLATION, ".detach()", ""),
        "but the package says": _slip(
            _DISTILLATION, "pattern(z_local, i, near, omega)", "pattern(z_local, i, near, 1.0)"
        ),
    },
    (DISTILLATION, 4): {
        "deceive nobody": _function("deceive(z)", "z"),
        "keep their lengths": _function("deceive(z)", "-2 * z"),
    },
    (HASH, 1): {
        "with the median": _function("average_hash(vector)", "vector > np.median(vector)"),
        "with 0": _function("average_hash(vector)", "vector > 0"),
        "64 truth values": _function("average_hash(vector)", "np.rint(vector)"),
        "differ from the package's": _function("average_hash(vector)", "vector < vector.mean()"),
        "one colour": _function("average_hash(vector)", "vector >= vector.mean()"),
    },
    (HASH, 2): {
        "these are counts": _function("agreement(bits)", "(bits[:, None] == bits[None, :]).sum(axis=2)"),
        "shares that differ": _function("agreement(bits)", "(bits[:, None] != bits[None, :]).mean(axis=2)"),
        "where both are 0": _function("agreement(bits)", "(bits[:, None] & bits[None, :]).mean(axis=2)"),
    },
    (HASH, 3): {
        "the nearest pair of members": _slip(_NEAREST, ".mean()", ".min()"),
        "the farthest members": _slip(_NEAREST, ".mean()", ".max()"),
        "not (1, 0)": _function("nearest(groups, distance)", "(1, 0)"),
    },
    (HASH, 4): {
        "everybody gets the same": _slip(_GROUPS, "if group == own", ""),
        "count the same": _slip(
            _GROUPS, "    for own in groups:", "    sizes = [1] * 6\n    for own in groups:"
        ),
        "the weights must sum to 1": _slip(_GROUPS, "sum(sizes[client] for client in members)", "sum(sizes)"),
    },
    (HASH, 5): {
        "FedAvg gives everybody": "fedavg_groups, local_groups = 6, 1\n",
        "Local leaves every client": "fedavg_groups, local_groups = 1, 5\n",
        "one to six groups": "fedavg_groups, local_groups = 0, 6\n",
    },
}
