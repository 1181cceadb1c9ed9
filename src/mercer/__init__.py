"""mercer: kernel machines with certificates."""

__version__ = "0.1.0"
