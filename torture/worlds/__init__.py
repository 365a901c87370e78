"""Corner worlds: how often intervals hold where the truth is known and the data are odd."""
