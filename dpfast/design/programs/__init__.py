"""Convex programs over prefilters and receivers, by cvxpy: the place for constraints of one's own.

Others use ``lmmse_program``, ``feedback_program`` and ``optimal_program``.

=======================  ========================================================
``prefilter_program``    programs for x(ω) = |G(ω)|² / ‖G‖₂²
``joint_program``        prefilter and receiver of a lag together
``worst_error_program``  least worst errors, for ``robust``
``solver``               how a program is solved, and what to do where that fails
=======================  ========================================================
"""
