"""The tables of a store of sweeps, and what the header of its file says."""

from __future__ import annotations

APPLICATION = 0x64705377  # "dpSw", in the header of the file
FORMAT = 1
SCHEMA = """
CREATE TABLE designs (key TEXT PRIMARY KEY, content BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE sweeps (
    id INTEGER PRIMARY KEY, configuration TEXT NOT NULL UNIQUE, dpfast TEXT NOT NULL, seed TEXT NOT NULL,
    content BLOB NOT NULL, created TEXT NOT NULL
);
CREATE TABLE blocks (
    sweep INTEGER NOT NULL, case_number INTEGER NOT NULL, block INTEGER NOT NULL, means BLOB NOT NULL,
    crc INTEGER NOT NULL, PRIMARY KEY (sweep, case_number, block)
) WITHOUT ROWID;
"""
