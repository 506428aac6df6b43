"""Publish filtered event streams under differential privacy, and know what accuracy it costs.

The names below are public. Behind them are rooms, of which each uses those above it and none below::

    _support, _kernels         what knows nothing of privacy; what is compiled
    filters                    targets
    privacy                    guarantees, and the noise that they take
    signals                    models of the private stream
    mechanisms                 what is published, how it is estimated, with what error
    design                     from target, privacy and signal to a mechanism
    simulation    releases     errors of mechanisms, simulated; real data, published
    reports                    pages and pictures of what was found
    cli                        the command
"""

from dpfast._support.lazy_names import lazy_names as _lazy_names
from dpfast._support.version import __version__ as __version__

__all__, __getattr__, __dir__ = _lazy_names(__name__, __file__)  # from __init__.pyi, where each name is imported
