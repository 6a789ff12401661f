"""Own data: the same numbers as the package's own sets, and one line for every folder that cannot be used."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from executed import run_here

from fgl_core.cli import main
from fgl_core.datasets import load_graph_dataset, load_node_dataset, own_data
from fgl_core.errors import InputError
from fgl_core.study.execute import execute
from fgl_core.study.spec import RunSpec, Spec
from fgl_core.study.store import Record, read_record

pytestmark = pytest.mark.usefixtures("root")

RESULTS = Path(__file__).parents[1] / "data" / "results"
SMALL = {"clients": 2, "hidden": 8, "rounds": 3}
# a path of six nodes, two features, two classes
PATH = {
    "edges": "0,1\n1,2\n2,3\n3,4\n4,5\n",
    "features": "1,0\n1,1\n0.5,0\n0,1\n0,2\n0,-1\n",
    "labels": "0\n0\n0\n1\n1\n1\n",
}
# twelve graphs of two nodes
PAIRS = {
    "A": "".join(f"{2 * graph + 1}, {2 * graph + 2}\n" for graph in range(12)),
    "graph_indicator": "".join(f"{graph + 1}\n{graph + 1}\n" for graph in range(12)),
    "graph_labels": "-1\n1\n" * 6,
    "node_labels": "3\n5\n" * 12,
}


def folder_of(path, parts):
    """A folder with text files, given by stem (``.csv``) or by whole name."""
    path.mkdir()
    for name, text in parts.items():
        (path / (name if "." in name else f"{name}.csv")).write_text(text)
    return path


def graph_set(path, parts=PAIRS, name="PAIRS"):
    return folder_of(path, {f"{name}_{part}.txt": text for part, text in parts.items()})


def as_text(array):
    return "\n".join(",".join(format(value, ".9g") for value in row) for row in np.atleast_2d(array)) + "\n"


def written_out(path, dataset):
    """A graph as CSV files."""
    parts = {"edges": dataset.edges, "features": dataset.x.toarray(), "labels": dataset.y[:, None]}
    return folder_of(path, {name: as_text(array) for name, array in parts.items()})


def written_as_set(path, dataset):
    """A set of graphs in the text format of the TU collection, each edge in both directions."""
    both = np.concatenate([dataset.edges, dataset.edges[:, ::-1]]) + 1
    parts = {
        "A": both,
        "graph_indicator": np.repeat(np.arange(dataset.num_graphs), np.diff(dataset.offsets))[:, None] + 1,
        "graph_labels": dataset.y[:, None],
        "node_attributes": dataset.x.toarray(),
    }
    return graph_set(path, {part: as_text(array) for part, array in parts.items()}, dataset.name)


def measured(**values):
    """A run's record without its name: everything that the data and the draws decide."""
    data = Record.parse(execute(RunSpec.parse(values))).canonical()
    return {key: value for key, value in data.items() if key not in ("spec", "digest")}


def refusal(folder):
    with pytest.raises(InputError) as error:
        own_data(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("method", ["fedavg", "fgssl"])
def test_karate_written_out_gives_the_numbers_of_karate(tmp_path, method):
    own = own_data(written_out(tmp_path / "club", load_node_dataset("karate")))
    assert (own.task, own.summary) == ("node", "34 nodes, 78 edges, 34 features, 2 classes")
    assert measured(dataset=own.name, method=method, **SMALL) == measured(
        dataset="karate", method=method, **SMALL
    )


def test_a_set_of_graphs_written_out_gives_the_numbers_of_its_setting(tmp_path):
    folder = written_as_set(tmp_path / "anywhere", load_graph_dataset("digits-01"))
    own = own_data(folder)
    assert own.task == "graph" and own.summary.startswith("360 graphs, ") and "again" not in own.summary
    run = {"method": "fedcch", "clients_per_dataset": 2, "hidden": 16, "rounds": 2}
    assert measured(setting=own.name, **run) == measured(setting="digits-01", **run)


def test_npz_csv_and_sparse_files_are_the_same_data(tmp_path):
    karate = load_node_dataset("karate")
    name = own_data(written_out(tmp_path / "club", karate)).name
    (tmp_path / "npz").mkdir()
    other = tmp_path / "npz" / "club"
    other.mkdir()
    np.savez(other / "edges.npz", karate.edges)
    np.savez(other / "labels.npz", karate.y)
    sp.save_npz(other / "features.npz", karate.x)
    assert own_data(other).name == name
    np.savez_compressed(other / "features.npz", karate.x.toarray())
    assert own_data(other).name == name
    assert load_node_dataset(name).digest() == karate.digest()


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("edges", "source,target\n" + PATH["edges"]),
        ("edges", '"0","1"\r\n"1","2"\r\n2.0, 3\r\n3,4\r\n\r\n4,5'),
        ("labels", "\ufeffclass\n" + PATH["labels"]),
    ],
)
def test_names_of_columns_quotes_and_other_line_ends_change_nothing(tmp_path, part, text):
    plain = own_data(folder_of(tmp_path / "path", PATH))
    other = tmp_path / "other"
    other.mkdir()
    assert own_data(folder_of(other / "path", {**PATH, part: text})).name == plain.name


def test_loops_repeats_directions_and_numbers_of_labels_are_said(tmp_path):
    edges = PATH["edges"].replace("4,5\n", "") + "1,0\n2,2\n0,1\n"
    own = own_data(folder_of(tmp_path / "path", {**PATH, "edges": edges, "labels": "2\n2\n2\n7\n7\n9\n"}))
    graph = load_node_dataset(own.name)
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert (graph.y.tolist(), graph.num_classes) == ([0, 0, 0, 1, 1, 2], 3)
    assert own.summary == (
        "6 nodes, 4 edges, 2 features, 3 classes; 1 self-loop left out; 2 rows named an edge again, in this"
        " direction or the other; 1 node without an edge; labels 2, 7, 9 became classes 0 to 2"
    )


def test_features_of_a_set_are_those_of_the_collection(tmp_path):
    attributes = "".join(f"{node}.5\n" for node in range(24))
    own = own_data(graph_set(tmp_path / "set", {**PAIRS, "node_attributes": attributes}))
    labels = load_graph_dataset(own.name)
    assert labels.x[[0, 1]].toarray().tolist() == [[1, 0, 0], [0, 0, 1]]  # labels 3 to 5, one column each
    assert labels.y.tolist() == [0, 1] * 6 and labels.edges[:2].tolist() == [[0, 1], [2, 3]]
    both = load_graph_dataset(own.name, attributes=True)
    assert both.x[[2]].toarray().tolist() == [[2.5, 1, 0, 0]]
    degrees = load_graph_dataset(own_data(graph_set(tmp_path / "bare", dict(list(PAIRS.items())[:3]))).name)
    assert degrees.x[[0]].toarray().tolist() == [[0, 1]]


NODE_FAULTS = {
    "no edges": ({"edges": None}, ["no edges.csv and no edges.npz", "NAME_graph_indicator.txt"]),
    "no labels": ({"labels": None}, ["no labels.csv and no labels.npz"]),
    "nothing in it": ({"labels": ""}, ["labels.csv holds no numbers"]),
    "names alone": ({"edges": "source,target\n"}, ["edges.csv holds no numbers"]),
    "ragged": ({"features": "1,0\n1,1\n1\n0,1\n0,2\n0,1\n"}, ["line 3: 1 columns", "before have 2"]),
    "a word": ({"features": "a,b\n1,1\n1,x\n"}, ["features.csv, line 3, column 2: 'x' is not a number"]),
    "nothing between commas": ({"edges": "0,1\n1,\n"}, ["edges.csv, line 2, column 2: '' is not a number"]),
    "semicolons": ({"edges": "a;b\n0;1\n"}, ["line 2, column 1: '0;1' is not a number", "commas"]),
    "nan": ({"features": PATH["features"].replace("0.5", "nan")}, ["features.csv, line 3", "NaN"]),
    "infinite": ({"features": PATH["features"].replace("0.5", "1e999")}, ["line 3", "infinite"]),
    "too large": ({"features": PATH["features"].replace("0.5", "1e39")}, ["beyond 3e38", "scale"]),
    "a row too few": ({"features": "1,0\n" * 5}, ["has 5 rows, but there are 6 labels"]),
    "negative label": ({"labels": "0\n0\n-1\n1\n1\n1\n"}, ["labels.csv, line 3: label -1 is negative"]),
    "half a label": ({"labels": "y\n0\n0\n0.5\n1\n1\n1\n"}, ["line 4: 0.5 is not whole"]),
    "two labels a node": ({"labels": "0,1\n" * 6}, ["labels.csv has 2 columns instead of 1"]),
    "one class": ({"labels": "3\n" * 6}, ["all nodes have label 3", "two classes"]),
    "unknown node": ({"edges": "0,1\n\n1,6\n"}, ["edges.csv, line 3: there is no node 6", "0 to 5"]),
    "negative node": ({"edges": "0,1\n1,-1\n"}, ["line 2: there is no node -1"]),
    "weights": ({"edges": "0,1,0.5\n1,2,0.5\n"}, ["3 columns instead of 2", "without a weight"]),
    "loops alone": ({"edges": "0,0\n3,3\n"}, ["joins no two different nodes"]),
    "pandas index": ({"labels": ",y\n0,0\n1,1\n"}, ["first column has no name", "index=False"]),
    "pandas columns": ({"features": "0,1,2\n1,2,3\n"}, ["counts the columns", "header=False"]),
    "not text": ({"edges.csv": b"\xff\xfe0\x00"}, ["edges.csv is no text in UTF-8"]),
    "two files": ({"edges.npz": b""}, ["both edges.csv and edges.npz"]),
}


@pytest.mark.parametrize("case", NODE_FAULTS)
def test_a_graph_that_cannot_be_used(tmp_path, case):
    changes, says = NODE_FAULTS[case]
    folder = folder_of(tmp_path / "path", PATH)
    for name, content in changes.items():
        path = folder / (name if "." in name else f"{name}.csv")
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refusal(folder)
    assert all(part in message for part in says), message
    assert message.count(str(folder)) == 1 and ": " in message  # the place once, then what to do


@pytest.mark.parametrize(
    ("save", "says"),
    [
        (lambda file: file.write_bytes(b"PK\x03\x04 cut"), "no readable NPZ file"),
        (lambda file: np.savez(file, np.eye(2), np.eye(2)), "holds 2 arrays: save one"),
        (lambda file: np.savez(file, np.array([{}], dtype=object)), "no readable NPZ file"),
        (lambda file: np.savez(file, np.array(["a", "b"])), "1 dimensions of <U1: save numbers"),
        (lambda file: np.savez(file, np.ones((6, 2, 2))), "3 dimensions of float64"),
        (lambda file: np.savez(file, np.empty((0, 2))), "holds no numbers"),
        (
            lambda file: np.savez(file, np.array([[1, 2]] * 5 + [[1, np.nan]])),
            "row 5 counted from 0: a value",
        ),
        (
            lambda file: sp.save_npz(file, sp.csr_array([[1, 0], [np.inf, 0]])),
            "row 1 counted from 0: a value",
        ),
    ],
)
def test_npz_files_that_cannot_be_used(tmp_path, save, says):
    folder = folder_of(tmp_path / "path", PATH)
    (folder / "features.csv").unlink()
    save(folder / "features.npz")
    assert says in refusal(folder)


def test_a_matrix_in_place_of_a_list_of_edges_is_not_written_out_to_say_so(tmp_path):
    folder = folder_of(tmp_path / "path", PATH)
    (folder / "edges.csv").unlink()
    sp.save_npz(folder / "edges.npz", sp.csr_array((10**6, 10**6)))  # eight terabytes with its zeros
    assert "edges.npz has 1000000 columns instead of 2" in refusal(folder)


GRAPH_FAULTS = {
    "no labels": ({"graph_labels": None}, ["no PAIRS_graph_labels.txt"]),
    "no edges": ({"A": None}, ["no PAIRS_A.txt"]),
    "graphs apart": ({"graph_indicator": "1\n2\n1\n2\n"}, ["line 3: graph 1 after graph 2", "together"]),
    "graph without a node": ({"graph_indicator": "1\n1\n3\n"}, ["line 3: graph 3 after graph 1"]),
    "graphs from zero": (
        {"graph_indicator": "0\n0\n1\n1\n"},
        ["line 1: graph 0 comes first", "numbered from 1"],
    ),
    "labels too few": ({"graph_labels": "1\n0\n"}, ["names 12 graphs, but there are 2 graph labels"]),
    "one class": ({"graph_labels": "1\n" * 12}, ["all graphs have label 1"]),
    "unknown node": ({"A": "1, 2\n24, 25\n"}, ["line 2: there is no node 25", "1 to 24"]),
    "node zero": ({"A": "0, 1\n"}, ["there is no node 0"]),
    "across": ({"A": "1, 2\n2, 3\n"}, ["line 2: an edge between graph 1 and graph 2"]),
    "loops alone": ({"A": "1, 1\n"}, ["joins no two different nodes"]),
    "node labels too few": ({"node_labels": "1\n"}, ["1 rows for 24 nodes"]),
    "node labels too far apart": ({"node_labels": "1\n99999\n" * 12}, ["spread over 99999 numbers"]),
    "nan": ({"node_attributes": "nan\n" * 24}, ["node_attributes.txt, line 1: a value is NaN"]),
    "ragged": ({"node_attributes": "1,2\n1\n"}, ["line 2: 1 columns"]),
    "a word": ({"graph_labels": "1\nyes\n"}, ["line 2, column 1: 'yes' is not a number"]),
}


@pytest.mark.parametrize("case", GRAPH_FAULTS)
def test_a_set_of_graphs_that_cannot_be_used(tmp_path, case):
    changes, says = GRAPH_FAULTS[case]
    parts = {part: text for part, text in {**PAIRS, **changes}.items() if text is not None}
    message = refusal(graph_set(tmp_path / "set", parts))
    assert all(part in message for part in says), message


def test_two_sets_in_one_folder(tmp_path):
    folder = graph_set(tmp_path / "set")
    (folder / "OTHER_graph_indicator.txt").write_text("1\n")
    assert "several sets of graphs (OTHER, PAIRS)" in refusal(folder)


def test_changed_data_are_refused_and_get_another_name(tmp_path):
    folder = folder_of(tmp_path / "path", PATH)
    before = own_data(folder)
    (folder / "labels.csv").write_text("0\n0\n1\n1\n1\n1\n")
    with pytest.raises(InputError, match="have changed since they were called own-path-") as error:
        execute(RunSpec.parse({"dataset": before.name, **SMALL}))
    assert before.sha256[:16] in str(error.value) and f"fgl data add {folder}" in str(error.value)
    after = own_data(folder)
    assert after.name != before.name and after.name[:9] == before.name[:9] == "own-path-"
    (folder / "labels.csv").write_text(PATH["labels"])
    assert load_node_dataset(before.name).digest() == before.sha256


def test_a_folder_that_moved_or_was_never_given(tmp_path):
    folder = folder_of(tmp_path / "path", PATH)
    name = own_data(folder).name
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(folder, tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is gone: `fgl data add` tells"):
        load_node_dataset(name)
    assert own_data(moved).name == name and load_node_dataset(name).num_nodes == 6
    with pytest.raises(InputError, match="nothing here says where own-path-0000000000000000 lies"):
        load_node_dataset("own-path-0000000000000000")


def test_records_on_own_data_can_be_read_where_the_data_are_not(tmp_path, home):
    name = own_data(folder_of(tmp_path / "path", PATH)).name
    record = execute(RunSpec.parse({"dataset": name, **SMALL, "clients": 1}))
    shutil.rmtree(tmp_path / "path")
    shutil.rmtree(home.root)
    assert Record.parse(record).spec.dataset == name
    assert str(tmp_path) not in json.dumps(record)


def test_what_was_recorded_before_is_still_the_same_run():
    stored = [json.loads(path.read_text()) for path in RESULTS.rglob("*.json")]
    assert stored
    assert [data["digest"] for data in stored if Spec.parse(data["spec"]).digest != data["digest"]] == []


def test_names_that_would_be_mistaken_are_refused(tmp_path):
    own = own_data(graph_set(tmp_path / "set", name="MUTAG"))
    with pytest.raises(InputError, match="names a dataset twice"):
        RunSpec.parse({"setting": f"MUTAG,{own.name}"})
    node = own_data(folder_of(tmp_path / "two words, a comma", PATH))
    assert node.name.startswith("own-two-words-a-comma-")
    with pytest.raises(InputError, match="is for node classification, not for graph"):
        execute(RunSpec.parse({"setting": node.name}))


def test_run_on_a_folder_records_and_says_what_was_read(tmp_path, home, capsys):
    folder = written_out(tmp_path / "club", load_node_dataset("karate"))
    assert main(["run", "--data", str(folder), "--clients", "2", "--rounds", "2"]) == 0
    out = capsys.readouterr().out
    (path,) = home.runs.glob("own-club-*.json")
    name = read_record(path).spec.dataset
    assert f"data: {name}: 34 nodes, 78 edges, 34 features, 2 classes" in out
    assert main(["run", "--dataset", name, "--clients", "2", "--rounds", "2"]) == 0
    assert list(home.runs.glob("*.json")) == [path]  # the same run


def test_a_folder_beside_a_known_name_does_not_hide_it(tmp_path, monkeypatch, home):
    monkeypatch.chdir(tmp_path)
    for name in ("karate", "digits-01"):
        (tmp_path / name).mkdir()
    assert main(["run", "--dataset", "karate", "--clients", "2", "--hidden", "8", "--rounds", "1"]) == 0
    assert main(["run", "--setting", "digits-01", "--hidden", "8", "--rounds", "1"]) == 0
    assert len(list(home.runs.glob("*.json"))) == 2


def test_several_sets_are_a_federation(tmp_path, home, capsys):
    folders = [graph_set(tmp_path / name, name=name) for name in ("ONE", "TWO")]
    flags = [part for folder in folders for part in ("--data", str(folder))]
    assert main(["run", *flags, "--method", "fedcch", "--hidden", "16", "--rounds", "1"]) == 0
    (path,) = home.runs.glob("*.json")
    clients = read_record(path).data["partition"]["clients"]
    assert [client["name"] for client in clients] == ["ONE", "TWO"]
    capsys.readouterr()
    assert main(["data", "add", *map(str, folders)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:8] for line in lines] == ["own-ONE-", "own-TWO-"]
    assert lines[0].endswith(": 12 graphs, 24 nodes, 12 edges, 3 features, 2 classes")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--data", "nowhere"], "nowhere is no folder"),
        (["run", "--data", "PATH/edges.csv"], "edges.csv is no folder"),
        (["run", "--data", "PATH", "--dataset", "cora"], "--data stands in place of --dataset"),
        (["run", "--data", "PATH", "--setting", "CHEM"], "--data stands in place of --setting"),
        (["run", "--data", "PATH", "--task", "graph"], "holds one graph, which is not for --task graph"),
        (["run", "--data", "SET", "--task", "node"], "holds a set of graphs, which is not for --task node"),
        (["run", "--data", "PATH", "--data", "SET"], "--data: nodes are classified in one graph"),
        (["run", "--data", "PATH", "--clients", "7"], "the 6 nodes of PATH cannot be given to 7 clients"),
        (["run", "--data", "PATH", "--clients", "6"], "no training node"),
        (["run", "--data", "SET", "--clients-per-dataset", "2"], "take 1 at most, for PAIRS"),
        (["run", "--data", "SET", "--method", "fedcch", "--clustering", "domain"], "is of no domain"),
        (["run", "--data", "FEW"], "PAIRS has 4 graphs, and a client needs 10"),
        (["run", "--dataset", "PATH"], "--dataset takes a name, and PATH is a folder: write --data PATH"),
        (["explain", "--data", "nowhere"], "nowhere is no folder"),
        (["data", "add", "nowhere"], "nowhere is no folder"),
        (["data", "add"], "requires an argument"),
    ],
)
def test_bad_commands_get_one_line(tmp_path, monkeypatch, capsys, home, arguments, says):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "PATH", PATH)
    graph_set(tmp_path / "SET")
    few = {
        part: "".join(text.splitlines(True)[: 4 if "graph_labels" in part else 8])
        for part, text in PAIRS.items()
    }
    graph_set(tmp_path / "FEW", {**few, "A": "1, 2\n"})
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and says in err, err
    assert not home.runs.exists() or not list(home.runs.iterdir())


def test_a_notebook_takes_own_data_by_name(tmp_path):
    own = own_data(written_out(tmp_path / "club", load_node_dataset("karate")))
    text = run_here("start/quickstart.ipynb", dataset=own.name, clients=2, rounds=2)
    assert "club: 34 nodes, 78 edges, 2 classes" in text
    assert f"fgl run --dataset {own.name} --clients 2 --rounds 2" in text
