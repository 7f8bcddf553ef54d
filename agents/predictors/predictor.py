"""Predictor of one task, by its features and its model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.predictors import FEATURES, MODELS, TASKS
from agents.predictors.auc import auc
from agents.predictors.calibration import Calibration, calibrate
from agents.predictors.columns import Columns, Scaling, columns_of, keep
from agents.predictors.examples import Examples
from agents.predictors.model import Model, Report, Table
from agents.predictors.stored import FORMAT, HEADER, check_stored, read_stored
from crawl_envs.types.arguments import one_of, whole
from crawl_envs.types.files import replacing
from crawl_envs.types.offer_features import OfferFeatures

FloatArray = NDArray[np.float64]


class Predictor:
    """Predicts whether an offer's price changes, or whether it is clicked or shown, within a day.

    Odds are calibrated on the validation table, a uniform sample
    (:func:`agents.predictors.calibration.calibrate`): probabilities are used as rates, and training
    tables may be weighted by clicks. The probabilities are biased where the validation days differ
    from the predicted days, as by their season.

    Args:
        task: ``price``, ``click`` or ``impression``.
        features: ``metadata``, ``history`` or ``both``.
        model: ``network`` or ``trees``.
        seed: seed of the training, >= 0.
        settings: fields of :class:`agents.predictors.network.NetworkSettings` or
            :class:`agents.predictors.trees.TreeSettings` that differ from the defaults.

    Raises:
        ValueError: an unknown name, a setting that the model does not have or outside its range.

    Attributes:
        calibration: correction of the model's log-odds; after :meth:`fit`. That of the shipped
            predictors was fitted on the first days of January, as in the paper, which are winter
            sales in the market's calendar: on the later test days price changes are predicted
            some 8 % too often (the network .0519, observed .0480).
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
        one_of("task", task, TASKS)
        one_of("features", features, FEATURES)
        one_of("model", model, MODELS)
        self.task, self.features, self.model = task, features, model
        self.seed = whole("seed", seed, 0)
        kind = settings_class(model)
        for name in settings:
            one_of("setting", name, tuple(kind.__dataclass_fields__))
        self.settings = kind(**settings)
        self.calibration, self.validation_auc = Calibration(), float("nan")
        self._scaling: Scaling | None = None
        self._fitted: Model | None = None

    def fit(self, train: Examples, validation: Examples, report: Report | None = None) -> Predictor:
        """Train, choose by validation AUC, and calibrate the odds.

        Args:
            train: a sample that depends on the past alone.
            validation: a uniform sample of later days.
            report: callback for the progress.

        Returns:
            The predictor itself.

        Raises:
            ValueError: a table lacks the features, or has labels of one class; validation days
                that are not later than all training days.
        """
        if validation.day.min() <= train.day.max():
            raise ValueError(
                f"validation must be later than day {train.day.max()}, the last of training, "
                f"got day {validation.day.min()}"
            )
        self._scaling = Scaling.learn(train.columns.of(self.features).history)
        tables = [self._table(examples) for examples in (train, validation)]
        fitted: Model = model_class(self.model).fit(self.settings, *tables, self.seed, report)
        odds = fitted.log_odds(tables[1][0])
        self._fitted = fitted
        self.validation_auc = auc(tables[1][1], odds)
        self.calibration = calibrate(odds, tables[1][1])
        return self

    def _table(self, examples: Examples) -> Table:
        """Return scaled columns and labels of examples; check that both classes occur."""
        labels = examples.labels(self.task)
        if not labels.any() or labels.all():
            raise ValueError(f"labels must hold both classes, got {len(labels)} of one")
        return self._scaled(examples.columns), labels

    def _scaled(self, columns: Columns) -> Columns:
        """Return the input columns of the model."""
        if self._scaling is None:
            raise ValueError(f"the predictor of {self.task!r} must be fitted or loaded first")
        history, metadata = columns.of(self.features)
        return Columns(self._scaling(history), metadata)

    def probabilities(self, examples: Examples) -> FloatArray:
        """Return the probabilities of examples, (n,).

        Raises:
            ValueError: the table lacks the features, or the predictor was not fitted.
        """
        return self._of_columns(examples.columns)

    def predict(self, offers: OfferFeatures) -> FloatArray:
        """Return the probabilities for the day of the features, (m,) float64 in (0, 1).

        Raises:
            ValueError: the predictor was not fitted.
        """
        return self._of_columns(columns_of(offers, self.features))

    def _of_columns(self, columns: Columns) -> FloatArray:
        """Return probabilities of unscaled columns, (n,)."""
        scaled = self._scaled(keep(columns, self.features))
        assert self._fitted is not None
        return self.calibration(self._fitted.log_odds(scaled))

    def save(self, path: str | Path) -> None:
        """Write a file of plain arrays (.npz), atomically.

        Raises:
            ValueError: the predictor was not fitted.
            OSError: it cannot be written.
        """
        if self._fitted is None or self._scaling is None:
            raise ValueError(f"the predictor of {self.task!r} must be fitted before it is saved")
        header = {
            "format": FORMAT,
            "task": self.task,
            "features": self.features,
            "model": self.model,
            "seed": self.seed,
            "settings": asdict(self.settings),
            "calibration": list(self.calibration),
            "validation_auc": self.validation_auc,
        }
        arrays: dict[str, Any] = {"mean": self._scaling.mean, "spread": self._scaling.spread}
        arrays |= {f"model_{name}": array for name, array in self._fitted.arrays().items()}
        arrays[HEADER] = np.array(json.dumps(header))
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        """Return the predictor in a file; nothing in it is executed.

        Raises:
            ValueError: there is no such file, or it is damaged, foreign or of another format.
        """
        header, arrays = read_stored(path)
        try:
            return cls._of(header, arrays)
        except (KeyError, TypeError, ValueError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ValueError(f"{path} is damaged: {what}") from None

    @classmethod
    def _of(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Predictor:
        """Return the predictor of a file; check that its parts fit together."""
        settings: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in header["settings"].items()
        }
        words = header["task"], header["features"], header["model"]
        predictor = cls(*words, **settings, seed=header["seed"])
        check_stored(predictor.model, predictor.features, predictor.settings, header, arrays)
        predictor.calibration = Calibration(*header["calibration"])
        predictor.validation_auc = header["validation_auc"]
        predictor._scaling = Scaling(arrays["mean"], arrays["spread"])
        own = {
            name.removeprefix("model_"): array
            for name, array in arrays.items()
            if name.startswith("model_")
        }
        predictor._fitted = model_class(predictor.model).from_arrays(predictor.settings, own)
        return predictor


def settings_class(model: str) -> Any:
    """Return the class of a model's settings."""
    if model == "network":
        from agents.predictors.network import NetworkSettings

        return NetworkSettings
    from agents.predictors.trees import TreeSettings

    return TreeSettings


def model_class(model: str) -> Any:
    """Return the class of a model; import its packages."""
    if model == "network":
        from agents.predictors.network import Network  # imports torch

        return Network
    from agents.predictors.trees import Trees

    return Trees
