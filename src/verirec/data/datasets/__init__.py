"""The data sets of the field, by name, in the form that their makers publish."""

from verirec.data.datasets.catalogue import CATALOGUE, DatasetInfo
from verirec.data.datasets.dataset import Dataset
from verirec.data.datasets.fetch import fetch_dataset
from verirec.data.datasets.load import data_home_folder, existing_home, find_dataset, load_dataset

__all__ = [
    "CATALOGUE",
    "Dataset",
    "DatasetInfo",
    "data_home_folder",
    "existing_home",
    "fetch_dataset",
    "find_dataset",
    "load_dataset",
]
