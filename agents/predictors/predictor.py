"""The predictor of one task: train, predict, save and load."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile

from agents.predictors import FEATURES, MODELS, TASKS
from agents.predictors.calibration import Calibration, calibrate
from agents.predictors.examples import Examples, Scaling, columns_of
from agents.predictors.ids import Arrays
from crawl_envs.system.files import replacing
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import one_of, whole
from crawl_envs.types.offer_features import HISTORY_FEATURES, METADATA_FEATURES, OfferFeatures

FORMAT = 1
DAMAGE = (AttributeError, EOFError, IndexError, OSError, RuntimeError, TypeError, ValueError)
"""Errors that reading a damaged or foreign file may raise, without errors of decompression."""


class Predictor:
    """Predict whether an offer changes its price, is clicked, or is shown within a day.

    Odds are calibrated on the validation table, a uniform sample
    (:func:`agents.predictors.calibration.calibrate`): probabilities are used as rates, and training
    tables may be weighted by clicks. The probabilities are biased if the validation days differ
    from the predicted days, for example by their season.

    Args:
        task: ``price``, ``click`` or ``impression``.
        features: ``metadata``, ``history`` or ``both``.
        model: ``network`` or ``trees``.
        seed: seed of the training, >= 0.
        settings: fields of :class:`agents.predictors.network.NetworkSettings` or
            :class:`agents.predictors.trees.TreeSettings` that differ from the defaults.

    Raises:
        ValueError: an unknown name, or a setting that is unknown or outside its range.

    Attributes:
        calibration: correction of the model's log-odds; after :meth:`fit`. The shipped predictors
            were calibrated on the first days of January, as in the paper. These are winter sales
            in the market's calendar, so on the later test days price changes are predicted some
            8 % too often (the network .0519, observed .0480).
        validation_auc: AUC on the validation table; after :meth:`fit`.
    """

    def __init__(
        self,
        task: str,
        features: str = "both",
        model: str = "network",
        *,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        self.task = one_of("task", task, TASKS)
        self.features = one_of("features", features, FEATURES)
        self.model, self.seed = one_of("model", model, MODELS), whole("seed", seed, 0)
        self._kind, settings_of = kind_of(model)
        for name in settings:
            one_of("setting", name, tuple(settings_of.__dataclass_fields__))
        self.settings = settings_of(**settings)
        self.calibration, self.validation_auc = Calibration(), float("nan")
        self._fitted: tuple[Scaling, Any] | None = None

    def fit(self, train: Examples, validation: Examples) -> Predictor:
        """Train, select by validation AUC, calibrate the odds, and return the predictor itself.

        Args:
            train: a sample that depends only on the past.
            validation: a uniform sample of later days.

        Raises:
            ValueError: a table has labels of one class; validation days that are not later than
                all training days.
        """
        from sklearn.metrics import roc_auc_score  # slow to import

        if validation.day.min() <= train.day.max():
            raise ValueError(
                f"validation must be later than day {train.day.max()}, the last of training, "
                f"got day {validation.day.min()}"
            )
        scaling, tables = Scaling.learn(train.columns.select(self.features)), []
        for examples in (train, validation):
            labels = examples.labels(self.task)
            if labels.all() or not labels.any():
                raise ValueError(f"labels must hold both classes, got {len(labels)} of one")
            tables.append((scaling(examples.columns.select(self.features)), labels))
        model = self._kind.fit(self.settings, *tables, self.seed)
        columns, labels = tables[1]
        odds = model.log_odds(columns)
        self._fitted, self.calibration = (scaling, model), calibrate(odds, labels)
        self.validation_auc = float(roc_auc_score(labels, odds))
        return self

    def predict(self, offers: OfferFeatures | Examples) -> FloatArray:
        """Return the probabilities of offers on a day, or of examples, (m,) float64 in (0, 1).

        Raises:
            ValueError: the predictor was not fitted.
        """
        columns = offers.columns if isinstance(offers, Examples) else columns_of(offers)
        scaling, model = self._trained()
        return self.calibration(model.log_odds(scaling(columns.select(self.features))))

    def _trained(self) -> tuple[Scaling, Any]:
        """Return the scaling of columns, and the trained network or trees."""
        if self._fitted is None:
            raise ValueError(f"the predictor of {self.task!r} must be fitted or loaded first")
        return self._fitted

    def save(self, path: str | Path) -> None:
        """Write a file of plain arrays (.npz) with a header of JSON, atomically.

        Raises:
            ValueError: the predictor was not fitted.
            OSError: it cannot be written.
        """
        scaling, model = self._trained()
        header: dict[str, Any] = {"format": FORMAT}
        header |= {name: getattr(self, name) for name in ("task", "features", "model", "seed")}
        header |= {"settings": asdict(self.settings), "calibration": self.calibration}
        text = json.dumps(header | {"validation_auc": self.validation_auc})
        arrays = {**scaling._asdict(), **model.arrays(), "header": np.array(text)}
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        """Return the predictor in a file; nothing in it is executed.

        Raises:
            ValueError: there is no such file, or it is damaged, foreign or of another format.
        """
        try:
            with Path(path).open("rb") as file, NpzFile(file, allow_pickle=False) as arrays:
                return cls._from_arrays(dict(arrays))
        except FileNotFoundError:
            raise ValueError(f"there is no predictor at {path}") from None
        except KeyError as error:
            raise ValueError(f"{path} is damaged or no predictor: {error} is missing") from None
        except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{path} is damaged or no predictor: {error}") from None

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Predictor:
        """Build a predictor from the arrays of a file."""
        header = json.loads(str(arrays["header"]))
        if header["format"] != FORMAT:
            raise ValueError(f"its format must be {FORMAT}, got {header['format']!r}")
        words = header["task"], header["features"], header["model"]
        predictor = cls(*words, seed=header["seed"], **header["settings"])
        predictor.calibration = Calibration._make(header["calibration"])
        predictor.validation_auc = header["validation_auc"]
        history = 0 if predictor.features == "metadata" else len(HISTORY_FEATURES)
        ids = 0 if predictor.features == "history" else len(METADATA_FEATURES)
        model = predictor._kind.take(predictor.settings, arrays, history, ids)
        predictor._fitted = Scaling(arrays["mean"], arrays["spread"]), model
        return predictor


def kind_of(model: str) -> tuple[Any, Any]:
    """Import and return the class of a model, ``network`` or ``trees``, and of its settings."""
    if model == "network":
        from agents.predictors.network import Network, NetworkSettings  # imports torch

        return Network, NetworkSettings
    from agents.predictors.trees import Trees, TreeSettings

    return Trees, TreeSettings
