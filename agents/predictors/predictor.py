"""Predictor of one task, by its features and its model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.predictors import FEATURES, MODELS, TASKS
from agents.predictors.auc import auc, both_classes
from agents.predictors.calibration import Calibration, calibrate
from agents.predictors.columns import Columns, Report, Scaling, columns_of
from agents.predictors.examples import Examples
from agents.predictors.stored import Stored, reading, write
from crawl_envs.types.arguments import one_of, real, whole
from crawl_envs.types.offer_features import HISTORY_FEATURES, METADATA_FEATURES, OfferFeatures

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
        self.task = one_of("task", task, TASKS)
        self.features = one_of("features", features, FEATURES)
        self.model, self.seed = one_of("model", model, MODELS), whole("seed", seed, 0)
        self._kind, settings_of = kind_of(model)
        for name in settings:
            one_of("setting", name, tuple(settings_of.__dataclass_fields__))
        self.settings = settings_of(**settings)
        self.calibration, self.validation_auc = Calibration(), float("nan")
        self._fitted: tuple[Scaling, Any] | None = None

    def fit(
        self,
        train: Examples,
        validation: Examples,
        report: Report = lambda done, text: None,
    ) -> Predictor:
        """Train, choose by validation AUC, and calibrate the odds.

        Args:
            train: a sample that depends on the past alone.
            validation: a uniform sample of later days.
            report: callback for the progress.

        Returns:
            The predictor itself.

        Raises:
            ValueError: a table has labels of one class; validation days that are not later than
                all training days.
        """
        if validation.day.min() <= train.day.max():
            raise ValueError(
                f"validation must be later than day {train.day.max()}, the last of training, "
                f"got day {validation.day.min()}"
            )
        labels = [both_classes(each.labels(self.task)) for each in (train, validation)]
        scaling = Scaling.learn(train.columns.of(self.features).history)
        columns = [self._scaled(scaling, each.columns) for each in (train, validation)]
        tables = zip(columns, labels, strict=True)
        model = self._kind.fit(self.settings, *tables, self.seed, report)
        odds = model.log_odds(columns[1])
        self._fitted = scaling, model
        self.validation_auc, self.calibration = auc(labels[1], odds), calibrate(odds, labels[1])
        return self

    def _scaled(self, scaling: Scaling, columns: Columns) -> Columns:
        """Return the input columns of the model."""
        history, metadata = columns.of(self.features)
        return Columns(scaling(history), metadata)

    def probabilities(self, examples: Examples) -> FloatArray:
        """Return the probabilities of examples, (n,).

        Raises:
            ValueError: the predictor was not fitted.
        """
        return self._of_columns(examples.columns)

    def predict(self, offers: OfferFeatures) -> FloatArray:
        """Return the probabilities for the day of the features, (m,) float64 in (0, 1).

        Raises:
            ValueError: the predictor was not fitted.
        """
        return self._of_columns(columns_of(offers))

    def _of_columns(self, columns: Columns) -> FloatArray:
        """Return probabilities of unscaled columns, (n,)."""
        scaling, model = self._known()
        return self.calibration(model.log_odds(self._scaled(scaling, columns)))

    def _known(self) -> tuple[Scaling, Any]:
        """Return what was learned: the scaling of columns, and a network or trees."""
        if self._fitted is None:
            raise ValueError(f"the predictor of {self.task!r} must be fitted or loaded first")
        return self._fitted

    def save(self, path: str | Path) -> None:
        """Write a file of plain arrays (.npz), atomically.

        Raises:
            ValueError: the predictor was not fitted.
            OSError: it cannot be written.
        """
        scaling, model = self._known()
        header = {name: getattr(self, name) for name in ("task", "features", "model", "seed")}
        header |= {"settings": asdict(self.settings), "calibration": list(self.calibration)}
        header["validation_auc"] = self.validation_auc
        write(path, header, {**scaling._asdict(), **model.arrays()})

    @classmethod
    def load(cls, path: str | Path) -> Predictor:
        """Return the predictor in a file; nothing in it is executed.

        Raises:
            ValueError: there is no such file, or it is damaged, foreign or of another format.
        """
        with reading(path) as (header, stored):
            words = header["task"], header["features"], header["model"]
            predictor = cls(*words, seed=header["seed"], **header["settings"])
            slope, shift = (real("calibration", number) for number in header["calibration"])
            predictor.calibration = Calibration(slope, shift)
            predictor.validation_auc = real("validation_auc", header["validation_auc"], least=0.0)
            predictor._take(stored)
        return predictor

    def _take(self, stored: Stored) -> None:
        """Take what was learned from a file."""
        history = len(HISTORY_FEATURES) if self.features != "metadata" else 0
        ids = len(METADATA_FEATURES) if self.features != "history" else 0
        scaling = Scaling(*(stored.take(name, np.float32, history) for name in Scaling._fields))
        if not (scaling.spread > 0.0).all():
            raise ValueError(f"spread must be > 0, got {scaling.spread.min()}")
        self._fitted = scaling, self._kind.take(self.settings, stored, history, ids)


def kind_of(model: str) -> tuple[Any, Any]:
    """Return the class of a model and that of its settings; import its packages."""
    if model == "network":
        from agents.predictors.network import Network, NetworkSettings  # imports torch

        return Network, NetworkSettings
    from agents.predictors.trees import Trees, TreeSettings

    return Trees, TreeSettings
