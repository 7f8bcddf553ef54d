"""Read and write the file of a model, ``model.zip``: a description in JSON, and plain arrays.

The member :data:`DESCRIPTION` has the arguments of the run, the traits of its environment
(:class:`agents.sb3.building.ModelTraits`), the progress of the run and the scale of its rewards.
The rest are arrays in NumPy's format ``.npy``: the weights of the policy, the state of its
optimisers, and further variables. Learning rates, clip ranges and other settings follow from the
arguments.

A model is rebuilt from the description, and each array is loaded after a check of its shape.
Nothing is unpickled, and no name in a file is imported, so a file of unknown origin runs no code of
its author. A file saved by Stable-Baselines3 itself has no description and raises an error. Members
of other names are not used.
"""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from agents.sb3.arguments import TrainArguments
from agents.sb3.building import ModelTraits, build_model
from crawl_envs.system.files import replacing
from crawl_envs.types.arguments import one_of, real

DESCRIPTION = "crawl_envs_agent.json"
FORMAT = "crawl-envs model 1"
COUNTS = ("_episode_num", "_n_calls", "_n_updates", "clone_rounds", "num_timesteps")
"""Attributes of a model that count the progress of its run; they depend on its algorithm."""
RATE = "exploration_rate"
"""The only attribute of dqn that changes in a run and is not a count."""
MOMENTS = 6
"""Number of moments that describe a scale of rewards."""


class Description(NamedTuple):
    """The description in a model file.

    Attributes:
        arguments: arguments of the run.
        traits: traits of its environment.
        progress: values of COUNTS and RATE, by name.
        rewards: the moments of rewards, empty in files of earlier versions.
    """

    arguments: TrainArguments
    traits: ModelTraits
    progress: Mapping[str, float]
    rewards: Sequence[float] = ()


def save_model(model: BaseAlgorithm, arguments: TrainArguments, path: Path) -> None:
    """Write a model file atomically; the same model gives the same bytes.

    Args:
        model: built by :func:`agents.sb3.building.build_model`.
        arguments: arguments of its run.
        path: the file.

    Raises:
        OSError: the file cannot be written.
    """
    built: Any = model
    names = [name for name in (*COUNTS, RATE) if hasattr(model, name)]
    description = {
        "format": FORMAT,
        "arguments": json.loads(arguments.to_json()),
        "traits": asdict(built.crawl_traits),
        "progress": {name: getattr(model, name) for name in names},
        "rewards": built.reward_scale.moments(),
    }
    with replacing(path) as unfinished, zipfile.ZipFile(unfinished, "w") as archive:
        text = json.dumps(description, indent=2) + "\n"
        archive.writestr(zipfile.ZipInfo(DESCRIPTION), text)
        for name, value in _learned(model).items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)


def read_description(path: Path) -> Description:
    """Return the description in a model file.

    Raises:
        ValueError: there is no such file, it is damaged, or not a model file.
    """
    with in_one_line(path, "is not an agent of this suite"), zipfile.ZipFile(path) as archive:
        if DESCRIPTION not in archive.namelist():
            raise ValueError(f"it has no {DESCRIPTION}")
        if sum(info.file_size for info in archive.infolist()) > path.stat().st_size:
            raise ValueError("its members are larger than the file")
        entries: Any = json.loads(archive.read(DESCRIPTION))
        if not isinstance(entries, dict) or entries.pop("format", None) != FORMAT:
            raise ValueError(f"its format must be {FORMAT!r}")
        if not {*Description._fields[:3]} <= {*entries} <= {*Description._fields}:
            raise ValueError(f"it must describe {', '.join(Description._fields)}")
    with in_one_line(path, "cannot be loaded"):
        progress, rewards = entries["progress"], entries.get("rewards", ())
        for name, value in progress.items():
            real(one_of("progress", name, (*COUNTS, RATE)), value, least=0.0)
        finite = all(map(math.isfinite, rewards))
        if (
            len(rewards) not in (0, MOMENTS)
            or not finite
            or min((*rewards[1:3], *rewards[4:]), default=0.0) < 0.0
        ):
            raise ValueError(f"its rewards must have {MOMENTS} finite moments, got {rewards!r:.80}")
        arguments = TrainArguments.from_json(json.dumps(entries["arguments"]))
        traits = dict(entries["traits"])
        if traits.pop("probing", False):  # in files of earlier versions
            raise ValueError("it acts on pages that could be observed without a crawl")
        return Description(arguments, ModelTraits(**traits), progress, rewards)


def read_arguments(path: Path) -> TrainArguments:
    """Return the arguments in a model file; see :func:`read_description`."""
    return read_description(path).arguments


def load_model(path: Path, env: Any = None) -> tuple[BaseAlgorithm, TrainArguments]:
    """Return a saved model and the arguments of its run.

    Args:
        path: the file.
        env: a bridge, or a wrapper of one, to continue training; None for a model that only acts.

    Raises:
        ValueError: there is no such file, it is damaged, not a model file, or does not fit ``env``.
    """
    arguments, traits, progress, rewards = read_description(path)
    if env is not None and ModelTraits.read(env, traits.cycle) != traits:
        raise ValueError(f"env must have {traits}, got {ModelTraits.read(env, traits.cycle)}")
    with in_one_line(path, "cannot be loaded"), zipfile.ZipFile(path) as archive:
        model: Any = build_model(arguments, traits, env)
        _take_arrays(model, archive)
        for name, value in progress.items():
            setattr(model, name, value)
        if rewards:
            model.reward_scale.restore(rewards)
    return model, arguments


@contextlib.contextmanager
def in_one_line(path: Path, problem: str) -> Iterator[None]:
    """Convert any error inside the block, which reads an agent's file, to a one-line ValueError."""
    try:
        yield
    except FileNotFoundError:
        raise ValueError(f"there is no agent at {path}") from None
    except Exception as error:  # a foreign file can raise any error in zipfile, NumPy or torch
        text = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} {problem}: {text}") from None


def _learned(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the learned tensors and step counts of a model, by member names."""
    values: dict[str, Any] = {}
    for name, state in model.get_parameters().items():
        if "param_groups" not in state:
            values |= {f"{name}/{key}": value for key, value in state.items()}
            continue
        for index, entry in state["state"].items():
            values |= {f"{name}/{index}/{key}": value for key, value in entry.items()}
    for name in model._get_torch_save_params()[1]:
        values[f"variables/{name}"] = getattr(model, name).detach()
    return values


def _take_arrays(model: BaseAlgorithm, archive: zipfile.ZipFile) -> None:
    """Load the arrays of a file into a new model; optimisers keep their settings.

    Raises:
        ValueError: an array has another shape.
        KeyError: an array is missing.
    """
    parameters: dict[str, Any] = model.get_parameters()
    for name, state in parameters.items():
        if "param_groups" in state:
            state["state"] = _optimiser_state(archive, name, attrgetter(name)(model))
        else:
            for key, value in state.items():
                state[key] = torch.from_numpy(_array(archive, f"{name}/{key}", value.shape))
    model.set_parameters(parameters, device="cpu")
    for name in model._get_torch_save_params()[1]:
        value = getattr(model, name)
        value.data.copy_(torch.from_numpy(_array(archive, f"variables/{name}", value.shape)))


def _optimiser_state(
    archive: zipfile.ZipFile, name: str, optimizer: torch.optim.Optimizer
) -> dict[int, dict[str, Any]]:
    """Return the state of an optimiser; weights that were never updated have none."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for member in archive.namelist():
        if member.startswith(f"{name}/"):
            index, key = member.removeprefix(f"{name}/").removesuffix(".npy").split("/")
            shape = () if key == "step" else weights[int(index)].shape
            array = _array(archive, f"{name}/{index}/{key}", shape)
            value = int(array) if array.dtype.kind == "i" else torch.from_numpy(array)
            state.setdefault(int(index), {})[key] = value
    if len({frozenset(entry) for entry in state.values()}) > 1:
        raise ValueError(f"{name} must have the same arrays for all weights that were updated")
    return state


def _array(archive: zipfile.ZipFile, name: str, shape: Sequence[int]) -> NDArray[Any]:
    """Return an array of a file; ValueError if it has another shape."""
    with archive.open(f"{name}.npy") as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    if array.shape != tuple(shape):
        raise ValueError(f"{name} must have shape {tuple(shape)}, got {array.shape}")
    return array
