"""Sweeps: tables of studies over grids of designs, that outgrow a laptop."""
