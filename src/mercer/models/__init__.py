"""Model files: safetensors with JSON, LIBSVM's text format both ways, and ONNX."""

from mercer.models.libsvm_reading import read_libsvm
from mercer.models.libsvm_writing import write_libsvm
from mercer.models.machines import REGISTRY
from mercer.models.model import Model, load, load_model, save
from mercer.models.onnx_writing import write_onnx

__all__ = ["REGISTRY", "Model", "load", "load_model", "read_libsvm", "save", "write_libsvm", "write_onnx"]
