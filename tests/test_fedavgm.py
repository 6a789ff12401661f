"""FedAvgM: two rounds by hand, and FedAvg where there is no momentum."""

import numpy as np
import torch

from fgl_core.federation import Server, Update
from fgl_core.methods import METHODS
from fgl_core.streams import Streams
from fgl_core.study.execute import execute
from fgl_core.study.spec import RunSpec


def loss(**method):
    values = {"dataset": "karate", "clients": 2, "hidden": 8, "rounds": 4, "method": method}
    return execute(RunSpec.parse(values), dtype="float64")["curves"]["loss"]


def test_two_rounds_by_hand():
    method = METHODS["fedavgm"](beta=0.5)
    server = Server(outbox=[{"w": torch.tensor([1.0, 0.0])}] * 2, streams=Streams(0))

    def aggregate(*tensors):
        updates = [
            Update(client, weight, {"w": torch.tensor(tensor)}, {})
            for client, (weight, tensor) in enumerate(zip((3, 1), tensors, strict=True))
        ]
        method.aggregate(server, updates)
        assert server.outbox[0] is server.outbox[1]
        return server.outbox[0]["w"].tolist()

    # the weighted mean is (3, 1): the change, and the momentum, (2, 1)
    assert aggregate([3.0, 0.0], [3.0, 4.0]) == [3.0, 1.0]
    # it is (3, 0) now: the change (0, -1), the momentum half of (2, 1) beside it, (1, -0.5)
    assert aggregate([4.0, 0.0], [0.0, 0.0]) == [4.0, 0.5]


def test_without_momentum_it_is_fedavg_and_with_it_the_first_round_still_is():
    fedavg = loss(name="fedavg")
    np.testing.assert_allclose(loss(name="fedavgm", beta=0.0), fedavg, rtol=0, atol=1e-5)
    moved = loss(name="fedavgm")
    # momentum is first felt by the model of the third round
    np.testing.assert_allclose(moved[:2], fedavg[:2], rtol=0, atol=1e-5)
    assert abs(moved[2] - fedavg[2]) > 1e-3
