"""The offline model: rules instead of a language model, driving the real tools."""

from dragoman.coder.models.offline.model import OfflineModel as OfflineModel
