"""Training on another device: how to ask for it, nothing left on the processor, the same numbers."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from fgl_core import device
from fgl_core.cli import main
from fgl_core.errors import InputError
from fgl_core.federation import LocalStep, Received, copies
from fgl_core.study.execute import execute
from fgl_core.study.setup import set_up
from fgl_core.study.spec import RunSpec

CUDA = torch.cuda.is_available()
NODE = {"dataset": "karate", "clients": 2, "hidden": 8, "rounds": 2}
GRAPH = {"setting": "digits-01,digits-23", "rounds": 2}


@pytest.fixture(autouse=True)
def no_choice(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "")  # also restored where a test sets it


@pytest.mark.skipif(CUDA, reason="there is a CUDA device")
@pytest.mark.parametrize("command", [["run", "--dataset", "karate"], ["study", "run", "fgssl-table1"]])
def test_without_a_cuda_device_one_line_says_so(root, capsys, command):
    assert main([*command, "--device", "cuda"]) == 2
    assert capsys.readouterr().err == (
        "fgl: no CUDA device is found by PyTorch: leave --device out to use the CPU\n"
    )
    assert not list((root / "data" / "runs").rglob("*.json"))
    assert not list((root / "data" / "results").rglob("*.json"))


@pytest.mark.parametrize("name", ["gpu", *(() if CUDA else ("cuda",))])
def test_a_variable_that_cannot_be_heeded_stops_a_study_before_any_run(root, capsys, monkeypatch, name):
    monkeypatch.setenv(device.VARIABLE, name)
    assert main(["study", "run", "fgssl-table1", "--profile", "smoke"]) == 2
    assert "FGL_DEVICE" in capsys.readouterr().err
    assert not list((root / "data").rglob("*.json"))


def test_an_unknown_device_and_one_for_workers_elsewhere(capsys):
    assert main(["run", "--device", "tpu"]) == 2
    assert "unknown --device 'tpu'" in capsys.readouterr().err
    assert main(["study", "run", "fgssl-table1", "--device", "cpu", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "set FGL_DEVICE where workers start" in capsys.readouterr().err


def test_the_variable_chooses_and_the_flag_overrules_it(monkeypatch):
    assert device.chosen() == torch.device("cpu")
    monkeypatch.setenv(device.VARIABLE, "gpu")
    with pytest.raises(InputError, match="unknown FGL_DEVICE 'gpu'"):
        device.chosen()
    device.choose(None)
    assert os.environ[device.VARIABLE] == "gpu"
    device.choose("cpu")  # for this process and the workers that it starts
    assert os.environ[device.VARIABLE] == "cpu" and device.chosen() == torch.device("cpu")


def test_a_record_names_a_device_only_where_it_is_not_the_processor():
    assert "device" not in execute(RunSpec.parse(NODE), device="cpu")["environment"]


@pytest.fixture
def elsewhere(monkeypatch):
    """A device without numbers, on which torch refuses to combine what lies in two places."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    from_numpy, numpy = torch.from_numpy, torch.Tensor.numpy

    def array_of(tensor):
        if tensor.device.type != "cpu":
            raise TypeError("can't convert a tensor of this device to numpy: use cpu() first")
        if not isinstance(tensor, FakeTensor):
            return numpy(tensor)
        return np.zeros(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))

    def moved(module, where):
        for part in module.modules():
            for name, tensor in part._parameters.items():
                part._parameters[name] = torch.nn.Parameter(torch.empty_like(tensor, device=where))
            for name, tensor in part._buffers.items():
                part._buffers[name] = torch.empty_like(tensor, device=where)
        return module

    monkeypatch.setattr(torch, "from_numpy", lambda array: mode.from_tensor(from_numpy(array)))
    monkeypatch.setattr(torch.Tensor, "numpy", array_of)
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: torch.empty_like(tensor, device="cpu"))
    monkeypatch.setattr(torch.nn.Module, "to", moved)
    monkeypatch.setattr(torch.nn.utils, "skip_init", lambda kind, *args, **kwargs: kind(*args, **kwargs))
    with mode:
        yield torch.device("meta")


@pytest.mark.parametrize(
    "values",
    [
        *(NODE | {"backbone": kind} for kind in ("gat", "gcn", "sage")),
        NODE | {"method": "fedprox"},
        *(GRAPH | {"method": name, "norm": norm} for name, norm in (("fedavg", "none"), ("fedcch", "pf"))),
        *(GRAPH | {"method": name} for name in ("fedprox", "fedbn", "fedstar", "gcfl")),
    ],
    ids=str,
)
def test_a_step_leaves_nothing_on_the_processor(elsewhere, values):
    spec = RunSpec.parse(values)
    setup = set_up(spec, torch.float32, elsewhere)
    client, model = setup.clients[0], setup.models[0].train()
    received = Received(copies(model, model.state_dict()), model)
    batch = next(iter(client.batches(spec.streams, 1, 0)))
    loss = spec.method.loss(LocalStep(model, received, client, batch, spec.streams, 1, 0))
    assert loss.device == elsewhere and loss.shape == ()
    loss.backward()
    for values in spec.method.report(client, model).values():
        assert isinstance(values, np.ndarray)
    used = [parameter for parameter in model.parameters() if parameter.grad is not None]
    assert used and all(parameter.grad.device == elsewhere for parameter in used)


def test_the_stand_in_notices_what_lies_in_two_places(elsewhere):
    with pytest.raises(Exception, match="same device"):
        torch.ones(3) + torch.ones(3, device=elsewhere)
    with pytest.raises(TypeError, match="numpy"):
        torch.ones(3, device=elsewhere).numpy()


@pytest.mark.skipif(not CUDA, reason="no CUDA device")
@pytest.mark.parametrize(
    "values",
    [
        *(NODE | {"method": name} for name in ("local", "fedavg", "fedopt", "fedsage", "fedsage+", "fgssl")),
        *(NODE | {"method": {"name": "fgssl", "denominator": "pairwise"}}, NODE | {"evaluation": "global"}),
        NODE | {"task": "heterogeneity", "method": "fgssl"},
        *(GRAPH | {"method": name} for name in ("fedavg", "fedbn", "fedstar", "gcfl+", "fedcch")),
    ],
    ids=str,
)
def test_a_cuda_device_gives_the_same_numbers(values):
    spec = RunSpec.parse(values)
    here, there = (execute(spec, dtype="float64", device=name) for name in ("cpu", "cuda"))
    assert there["environment"]["device"]
    for name, curve in here["curves"].items():
        np.testing.assert_allclose(there["curves"][name], curve, atol=1e-5, err_msg=name)
    assert there["bytes"] == here["bytes"] and there["partition"] == here["partition"]
