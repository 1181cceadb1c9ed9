"""Options that several subcommands share, each stated once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

MachineName = Literal["auto", "svc", "lssvc", "logistic", "svr", "lssvr", "ordinal", "odds", "rank"]
KernelName = Literal["gaussian", "linear", "polynomial", "laplacian", "exponential", "matern"]
Missing = Literal["refuse", "impute", "drop"]

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A data file: svmlight, CSV, Parquet, .npy or .npz; also .gz, .xz, .bz2; - is standard input.",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that mercer fit has written.")]
Target = Annotated[str | None, typer.Option(help="Target column of a table, by name or number.")]
Groups = Annotated[
    str | None,
    typer.Option(help="Column of a table with the query of each point, for rankings; svmlight files have qid:."),
]
TaskChoice = Annotated[
    Literal["classification", "regression", "ordinal", "rank"] | None,
    typer.Option(
        help="What the target asks for: ordinal for ordered classes, rank for an order inside queries.",
        show_default="class or number, by the target",
    ),
]
Format = Annotated[
    str | None, typer.Option(help="svmlight, csv, parquet, npy or npz; else by the ending (of -: by the content).")
]
MissingValues = Annotated[
    Missing,
    typer.Option(help="Missing values: refuse them, impute the mean of the training points, or drop the points."),
]
MissingInPrediction = Annotated[
    Literal["refuse", "impute"] | None,
    typer.Option(
        help="Missing values: refuse them, or impute the means of the training points.", show_default="as in training"
    ),
]
Machine = Annotated[MachineName, typer.Option(help="The machine; auto decides by the target and the number of points.")]
Cost = Annotated[float | None, typer.Option("--C", help="Cost of an error; chosen from the data when left out.")]
Sigma = Annotated[
    float | None, typer.Option(help="Width of the kernel, exp(-|x-z|^2 / (2 sigma^2)); chosen when left out.")
]
Gamma = Annotated[float | None, typer.Option(help="The same as 1/(2 sigma^2).")]
KernelChoice = Annotated[KernelName, typer.Option(help="The kernel.")]
Degree = Annotated[int, typer.Option(help="Degree of the polynomial kernel.")]
Epsilon = Annotated[
    float | None, typer.Option(help="Half the width of the tube of svr; by default a tenth of the target's spread.")
]
Scale = Annotated[bool, typer.Option("--scale/--no-scale", help="Standardise the features; kept in the model.")]
Device = Annotated[Literal["cpu"], typer.Option(help="Where to compute.")]
Memory = Annotated[str | None, typer.Option(help="Memory for kernel values, such as '512 MiB'.")]
Time = Annotated[float | None, typer.Option(help="Seconds after which the best machine so far is kept.")]
CheckpointFile = Annotated[Path | None, typer.Option(help="File that keeps what a killed run has reached.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, where there is one.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
