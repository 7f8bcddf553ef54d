"""The file of a model, ``model.zip``: a description in JSON, and plain arrays.

The member :data:`DESCRIPTION` has the arguments of the run, the traits of its environment
(:class:`agents.sb3.building.ModelTraits`) and the progress of the run. Every other member is an
array in NumPy's format ``.npy``: the weights of the policy, the state of its optimisers, and
further variables. Learning rates, clip ranges and other settings follow from the arguments.

A model is rebuilt from the description, and each array is loaded after checks of its name, shape
and type. Nothing is unpickled, and no name in a file is imported, so opening a file of unknown
origin runs no code of its author. A file saved by Stable-Baselines3 itself has no description and
is refused. Members of other names are checked for damage, and not used.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Iterator, Mapping
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
from crawl_envs.types.arguments import share, whole
from crawl_envs.types.files import replacing

DESCRIPTION = "crawl_envs_agent.json"
FORMAT = "crawl-envs model 1"
COUNTS = ("_episode_num", "_n_calls", "_n_updates", "clone_rounds", "num_timesteps")
"""Attributes of a model that count the progress of its run; they depend on its algorithm."""
RATE = "exploration_rate"
"""The only attribute of dqn that changes in a run and is not a count."""
MOST_COUNTED = 2**53


class Description(NamedTuple):
    """The description in a model file.

    Attributes:
        arguments: arguments of the run.
        traits: traits of its environment.
        progress: values of COUNTS and RATE, by name.
    """

    arguments: TrainArguments
    traits: ModelTraits
    progress: Mapping[str, float]


def save_model(model: BaseAlgorithm, arguments: TrainArguments, path: Path) -> None:
    """Write a model file atomically; the same model gives the same bytes.

    Args:
        model: built by :func:`agents.sb3.building.build_model`.
        arguments: arguments of its run.
        path: the file.

    Raises:
        OSError: the file cannot be written.
    """
    names = [name for name in (*COUNTS, RATE) if hasattr(model, name)]
    description = {
        "format": FORMAT,
        "arguments": json.loads(arguments.to_json()),
        "traits": asdict(model.crawl_traits),  # type: ignore[attr-defined]  # ours
        "progress": {name: getattr(model, name) for name in names},
    }
    with replacing(path) as unfinished, zipfile.ZipFile(unfinished, "w") as archive:
        text = json.dumps(description, indent=2) + "\n"
        archive.writestr(zipfile.ZipInfo(DESCRIPTION), text)
        for name, value in _learned(model).items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _array(value), allow_pickle=False)


def read_description(path: Path) -> Description:
    """Return the description in a model file, after checking the integrity of the file.

    Raises:
        ValueError: there is no such file, it is damaged, or not a model file.
    """
    with _one_line(path, "is not an agent of this suite"), zipfile.ZipFile(path) as archive:
        held = archive.infolist()
        if DESCRIPTION not in archive.namelist():
            raise ValueError(f"it has no {DESCRIPTION}")
        if sum(info.file_size for info in held) > path.stat().st_size:
            raise ValueError("its members are larger than the file")
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"it is damaged in {damaged}")
        entries = json.loads(archive.read(DESCRIPTION))
        if not isinstance(entries, dict) or entries.pop("format", None) != FORMAT:
            raise ValueError(f"its format must be {FORMAT!r}")
        if set(entries) != set(Description._fields):
            raise ValueError(f"it must describe {', '.join(Description._fields)}")
    with _one_line(path, "cannot be loaded"):
        arguments = TrainArguments.from_json(json.dumps(entries["arguments"]))
        traits = _traits(entries["traits"])
        _check_width(arguments, traits, path.stat().st_size)
        return Description(arguments, traits, _progress(entries["progress"]))


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
    arguments, traits, progress = read_description(path)
    if env is not None:
        _check_fits(traits, env)
    with _one_line(path, "cannot be loaded"), zipfile.ZipFile(path) as archive:
        model = build_model(arguments, traits, env)
        _take_arrays(model, archive)
        for name, value in progress.items():
            setattr(model, name, value)
    return model, arguments


@contextlib.contextmanager
def _one_line(path: Path, problem: str) -> Iterator[None]:
    """Raise all errors with a model file as a ValueError of one line."""
    try:
        yield
    except FileNotFoundError:
        raise ValueError(f"there is no agent at {path}") from None
    except Exception as error:  # a foreign file can make zipfile, NumPy, torch raise anything
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} {problem}: {first}") from None


def _traits(entries: Any) -> ModelTraits:
    """Return the traits of a description; ValueError if they are invalid."""
    try:
        return ModelTraits(**entries)
    except TypeError as error:
        raise ValueError(f"its traits are not those of a model: {error}") from None


def _progress(entries: Any) -> dict[str, float]:
    """Return the progress of a run; ValueError if it is invalid."""
    known = (*COUNTS, RATE)
    if not isinstance(entries, dict) or not set(entries) <= set(known):
        raise ValueError(f"its progress must be values of {', '.join(known)}, got {entries!r:.80}")
    for name, value in entries.items():
        if name in COUNTS:
            whole(name, value, 0, MOST_COUNTED)
        else:
            share(name, value)
    return entries


def _check_width(arguments: TrainArguments, traits: ModelTraits, size: int) -> None:
    """Raise ValueError if the weights of one layer would be larger than the whole file.

    Every network has a layer of width · width weights. ``mlp`` and ``plain`` also have one of
    m · F · width.
    """
    flattens = arguments.network in ("mlp", "plain")
    inputs = traits.num_pages * len(traits.features) if flattens else 0
    if 4 * arguments.width * (arguments.width + inputs) > size:
        raise ValueError(
            f"width must be one whose weights fit into {size} bytes, got {arguments.width}"
        )


def _check_fits(traits: ModelTraits, env: Any) -> None:
    """Raise ValueError unless an environment has the columns and the spaces of a model."""
    shape, features = env.observation_space.shape, tuple(env.get_attr("features", 0)[0])
    if shape != traits.observation_space().shape or features != traits.features:
        raise ValueError(
            f"env must show {traits.num_pages} pages with {', '.join(traits.features)}, got "
            f"{shape[0]} with {', '.join(features)}"
        )
    if env.action_space != traits.action_space():
        raise ValueError(f"env must take actions {traits.action_space()}, got {env.action_space}")


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
        values[f"variables/{name}"] = getattr(model, name)
    return values


def _array(value: Any) -> NDArray[Any]:
    """Return a tensor, or a count, as an array."""
    return np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value)


def _take_arrays(model: BaseAlgorithm, archive: zipfile.ZipFile) -> None:
    """Load the arrays of a file into a new model.

    Optimisers keep their own settings. They have no state for weights never updated.

    Raises:
        ValueError: an array has another shape or type.
        KeyError: an array is missing.
    """
    _fill_optimizers(model)
    own, held = _learned(model), set(archive.namelist())

    def taken(name: str) -> Any:
        return _read_value(archive, name, own[name])

    parameters: dict[str, Any] = {}
    for name, state in model.get_parameters().items():
        if "param_groups" not in state:
            parameters[name] = {key: taken(f"{name}/{key}") for key in state}
            continue
        updated = {
            index: {key: taken(f"{name}/{index}/{key}") for key in entry}
            for index, entry in state["state"].items()
            if any(f"{name}/{index}/{key}.npy" in held for key in entry)
        }
        parameters[name] = {**state, "state": updated}
    model.set_parameters(parameters, device="cpu")
    for name in model._get_torch_save_params()[1]:
        getattr(model, name).data.copy_(taken(f"variables/{name}"))


def _fill_optimizers(model: BaseAlgorithm) -> None:
    """Take a step with zero gradients, so that the optimisers have a state for every weight."""
    for name in model._get_torch_save_params()[0]:
        optimizer = attrgetter(name)(model)
        if isinstance(optimizer, torch.optim.Optimizer):
            for group in optimizer.param_groups:
                for weights in group["params"]:
                    weights.grad = torch.zeros_like(weights)
            optimizer.step()
            optimizer.zero_grad()


def _read_value(archive: zipfile.ZipFile, name: str, own: Any) -> Any:
    """Return a tensor or a count of a file, of the shape and type of the model's ``own``.

    Raises:
        ValueError: another shape or type.
    """
    expected = _array(own)
    with archive.open(f"{name}.npy") as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise ValueError(
            f"{name} must be {expected.dtype} of shape {expected.shape}, got {array.dtype} of "
            f"shape {array.shape}"
        )
    return torch.from_numpy(array) if isinstance(own, torch.Tensor) else int(array)
