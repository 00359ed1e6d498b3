"""Draw the pictures of the pages anew: the figures of the examples in examples/gallery that the pages show."""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# picture -> the example whose last figure it is
PICTURES = {
    "residuals.png": "plot_07_regression",
    "novelty.png": "plot_08_novelty",
    "choose_C.png": "plot_04_choose_C",
}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for picture, example in PICTURES.items():
        runpy.run_path(str(Path(__file__).parent / "gallery" / f"{example}.py"))
        plt.gcf().savefig(folder / picture, dpi=90)
        plt.close("all")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
