"""Model files: safetensors with JSON, LIBSVM's text format both ways, and ONNX."""

from mercer.models.model import REGISTRY, Model, load, load_model, save

__all__ = ["REGISTRY", "Model", "load", "load_model", "save"]
