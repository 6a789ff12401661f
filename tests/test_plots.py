"""What all figures share."""

from fgl_core.plots.style import COLOURS, FIXED, looks


def test_a_method_keeps_its_look_and_no_two_lines_have_one_colour():
    methods = ["fedavg", "fedprox", "fedstar", "gcfl", "fedcch", "fedcch"]
    chosen = looks((f"{method} {number}", method) for number, method in enumerate(methods))
    assert chosen["fedavg 0"] == FIXED["fedavg"]
    assert len({colour for colour, _ in chosen.values()}) == len(methods)
    last = looks([("a", "fedprox"), ("FGSSL", "fgssl")])
    assert last["FGSSL"] == FIXED["fgssl"] and last["a"][0] != FIXED["fgssl"][0]


def test_lines_beyond_the_palette_differ_in_colour_or_style():
    chosen = looks((str(number), "fedprox") for number in range(len(COLOURS) + 2))
    assert len(chosen) == len(set(chosen.values())) == len(COLOURS) + 2
