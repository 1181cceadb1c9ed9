"""Reading and writing data: svmlight, CSV, Parquet and NumPy files, and the bundled samples."""

from mercer.data.dataset import Dataset
from mercer.data.reading import FORMATS, read, read_blocks, write
from mercer.data.samples import SAMPLES, benchmark, sample
from mercer.data.scaling import Standardise

__all__ = ["FORMATS", "SAMPLES", "Dataset", "Standardise", "benchmark", "read", "read_blocks", "sample", "write"]
