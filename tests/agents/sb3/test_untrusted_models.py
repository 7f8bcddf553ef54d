"""Model files of unknown origin: none runs code, and what is wrong with one is said in one line."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import shutil
import zipfile

import cloudpickle
import numpy as np
import pytest
import torch

import agents
from agents.sb3.lanes import recommended
from agents.sb3.training import train
from scripts import evaluate
from scripts import train as training_command
from tests.scripts import commands
from tests.scripts.commands import SMALL, done, refused

PLACE = {"num_pages": 4, "bandwidth": 4, "horizon": 5}
SHORT = ["--lanes", 4, "--set", "rollout=10", "--episodes", 2, "--policies", "RandomCrawl"]
DESCRIPTION = "crawl_envs_agent.json"
PICKLED = ("policy.pth", "policy.optimizer.pth", "pytorch_variables.pth", "tensors.pth")
ENTRIES = (
    "lr_schedule",
    "policy_class",
    "clip_range",
    "observation_space",
    "crawl_features",
    "odd",
)


class Payload:
    """Leaves a marker where it is unpickled."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.makedirs, (self.marker, 0o777, True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a short run, and its model as Stable-Baselines3 saves it."""
    before = torch.get_num_threads()
    folder = tmp_path_factory.mktemp("made") / "mine"
    arguments = recommended(
        "ppo", env_args=PLACE, lanes=4, steps=200, rollout=10, checkpoint_steps=10**9
    )
    agent = train(arguments, folder)
    agent.model.save(folder.parent / "plain.zip")
    torch.set_num_threads(before)
    return folder, members(folder.parent / "plain.zip")


@pytest.fixture
def mine(made, tmp_path):
    """A copy of that folder, to be spoiled."""
    return shutil.copytree(made[0], tmp_path / "mine")


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, changed):
    """Replace members of an archive, or add them; None leaves one out."""
    held = {**members(path), **changed}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            if data is not None:
                archive.writestr(name, data)


def poisoned(made, path, marker):
    """Add all that Stable-Baselines3 would have saved, with a payload in every place."""
    payload = Payload(marker)
    serialized = base64.b64encode(cloudpickle.dumps(payload)).decode()
    data = json.loads(made[1]["data"])
    data |= {name: {":type:": "x", ":serialized:": serialized} for name in ENTRIES}
    pickled = dict.fromkeys(PICKLED, pickle.dumps(payload))
    rewrite(path, {**made[1], **pickled, "data": json.dumps(data).encode()})


def described(path, section, **entries):
    """Change entries in a section of a description."""
    description = json.loads(members(path)[DESCRIPTION])
    description[section] |= entries
    rewrite(path, {DESCRIPTION: json.dumps(description).encode()})


def ways(folder, out):
    """Every way in which a command or a program takes up a model."""
    yield lambda: agents.load(folder)
    few = [*SMALL, "--episodes", 1, "--policies", "RandomCrawl", "--workers", 1]
    yield lambda: commands.run(evaluate.app, folder, "CrawlNCIS-v0", *few, out=out / "evaluated")
    start = ["ppo", "CrawlNCIS-v0", *SMALL, *SHORT, "--steps", 80]
    app = training_command.app
    yield lambda: commands.run(app, *start, "--start", folder, out=out / "started")
    yield lambda: commands.run(app, *start[:-1], 240, "--set", "pages=any", out=folder)


@pytest.mark.parametrize("way", range(4), ids=["load", "evaluate", "start", "resume"])
def test_payloads_beside_a_model_are_never_run(made, mine, tmp_path, way):
    marker = tmp_path / "marker"
    poisoned(made, mine / "model.zip", marker)
    try:
        result = list(ways(mine, tmp_path))[way]()
    finally:
        assert not marker.exists()
    if way:
        done(result)


def test_payloads_in_place_of_arrays_are_refused(mine, tmp_path):
    marker, path = tmp_path / "marker", mine / "model.zip"
    name = "policy/features_extractor.rows.bias.npy"
    objects = io.BytesIO()
    np.save(objects, np.array([Payload(marker)], object), allow_pickle=True)
    whole = path.read_bytes()
    for data in (pickle.dumps(Payload(marker)), objects.getvalue(), b""):
        rewrite(path, {name: data})
        with pytest.raises(ValueError, match="cannot be loaded") as error:
            agents.load(mine)
        assert len(str(error.value).splitlines()) == 1
        assert not marker.exists()
        path.write_bytes(whole)
    rewrite(path, {name: objects.getvalue()})
    for command in list(ways(mine, tmp_path))[1:]:
        refused(command(), "cannot be loaded")
    assert not marker.exists()


def test_files_of_stable_baselines_are_refused(made, mine, tmp_path):
    marker, path = tmp_path / "marker", mine / "model.zip"
    poisoned(made, path, marker)
    rewrite(path, {DESCRIPTION: None})
    with pytest.raises(ValueError, match=f"is not an agent of this suite: it has no {DESCRIPTION}"):
        agents.load(mine)
    for command in list(ways(mine, tmp_path))[1:]:
        refused(command(), "is not an agent of this suite")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("section", "entries", "message"),
    [
        ("arguments", {"network": "os:system"}, "network must be module:Class of a"),
        ("arguments", {"algorithm": "os:system"}, "algorithm must be module:Class of a"),
        ("arguments", {"env_id": "os;"}, "env_id must be the id of an environment, got 'os;'"),
        ("arguments", {"env_id": 3}, "env_id must be the id of an environment, got 3"),
        ("arguments", {"env_args": [1]}, r"env_args must be arguments by name, got \[1\]"),
        ("arguments", {"model_args": "x"}, "model_args must be arguments by name, got 'x'"),
        ("arguments", {"instance": 3}, "instance must be arguments by name, got 3"),
        ("arguments", {"policy_kwargs": {}}, "arguments must be among"),
        *(
            ("arguments", {"model_args": given}, "model_args must be among")
            for given in ({"policy_kwargs": {}}, {"rollout_buffer_class": "os:system"})
        ),
        ("arguments", {"width": 10_000}, r"width must be an integer in \[1, 4096\], got 10000"),
        ("arguments", {"network": "plain"}, "There is no item named 'policy/"),
        *(("arguments", {"lanes": lanes}, "cannot be loaded") for lanes in (10**9, 10**30)),
        ("arguments", {"seed": 10**30}, "cannot be loaded"),
        (
            "arguments",
            {"algorithm": "dqn", "model_args": {"buffer_size": 10**13}},
            "cannot be loaded: Unable to allocate",
        ),
        ("arguments", {"width": 4}, r"must have shape \(4,.*got \("),
        ("arguments", {"network": "mlp"}, "There is no item named 'policy/"),
        *(("traits", {"num_pages": m}, "num_pages must be an integer in") for m in (0, 2**26 + 1)),
        *(
            ("traits", {"features": given}, "features must be one or more names of columns")
            for given in ([], [3], "elapsed")
        ),
        ("traits", {"action_form": "os:system"}, "action_form must be one of page, scores"),
        ("traits", {"cycle": -1.0}, "cycle must be finite and > 0"),
        ("traits", {"batch": 5}, "batch must be an integer in"),
        ("traits", {"probing": True}, "pages that could be observed without a crawl"),
        ("traits", {"highest": 0.5}, "highest must be finite and >= 1"),
        ("traits", {"colour": "red"}, "unexpected keyword argument 'colour'"),
        ("progress", {"num_timesteps": -1}, "num_timesteps must be finite and >= 0, got -1"),
        ("progress", {"exploration_rate": "x"}, "exploration_rate must be finite"),
        ("progress", {"policy": "x"}, "progress must be one of .*, got 'policy'"),
    ],
)
def test_odd_descriptions_are_refused(mine, section, entries, message):
    described(mine / "model.zip", section, **entries)
    with pytest.raises(ValueError, match=message) as error:
        agents.load(mine)
    assert len(str(error.value).splitlines()) == 1


def test_a_description_of_an_earlier_version_is_read(mine):
    described(mine / "model.zip", "traits", probing=False)
    assert agents.load(mine).features


@pytest.mark.parametrize("moments", [[1.0], [1.0] * 5 + [float("nan")], "sixsix", {"a": 1}, 3])
def test_odd_moments_of_rewards_are_refused(mine, moments):
    path = mine / "model.zip"
    description = json.loads(members(path)[DESCRIPTION])
    description["rewards"] = moments
    rewrite(path, {DESCRIPTION: json.dumps(description).encode()})
    with pytest.raises(ValueError, match="cannot be loaded"):
        agents.load(mine)


def test_a_description_must_be_one(mine):
    path = mine / "model.zip"
    for text in ("", "3", "{}", "[" * 10**5, '{"format": "another"}', "\xff"):
        rewrite(path, {DESCRIPTION: text.encode("latin-1")})
        with pytest.raises(ValueError, match="is not an agent of this suite") as error:
            agents.load(mine)
        assert len(str(error.value).splitlines()) == 1


def test_members_may_not_grow_when_they_are_unpacked(mine):
    path = mine / "model.zip"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large", bytes(10**7))
    with pytest.raises(ValueError, match="its members are larger than the file"):
        agents.load(mine)


def test_arrays_of_another_kind_are_refused(mine):
    path = mine / "model.zip"
    whole = path.read_bytes()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**13,)}
    )
    state = io.BytesIO()
    np.save(state, np.zeros(3, np.float32))
    for name, data in (
        ("policy/features_extractor.rows.bias.npy", header.getvalue()),
        ("policy.optimizer/0/exp_avg.npy", state.getvalue()),
        ("policy.optimizer/0/exp_avg.npy", None),
    ):
        assert name in members(path)
        rewrite(path, {name: data})
        with pytest.raises(ValueError, match="cannot be loaded") as error:
            agents.load(mine)
        assert len(str(error.value).splitlines()) == 1
        path.write_bytes(whole)
