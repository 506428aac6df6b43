"""Matrix mechanisms over a horizon: one file for each, with its mathematics.

Others use the functions of the files' names.

==========================  ==============================================================
``square_root``             ``square_root`` of the target as a strategy
``optimal_factorization``   ``optimal_factorization``: the least mean error over a horizon
``unbiased_factorization``  strategies with an unbiased receiver
``pure_factorization``      strategies for Laplace and geometric noise
``l1_search``               what is searched for them: without a model, or with a receiver
``l1_factorization``        a search from several starts
``l1_descent``              descent on columns of ℓ₁ norm one
``l1_starts``               where it starts from
``joint_factorization``     strategy and linear receiver together
``joint_problem``           their error and its gradient
``joint_bound``             what no such error goes below
``limited_memory_descent``  L-BFGS in single and double precision
``triangular_blocks``       products that leave out zeros
``buffered_toeplitz``       strategies with few buffers
``binary_tree``             sums over nodes of binary trees
``tree``                    trees with k branches, and least squares
``shared_noise``            noise on the inputs that steps share in a tree
``decayed_sum``             sums that forget
``fourier``                 ``fourier_perturbation``: noisy coefficients
``compressive``             random projections and sparse decoding
``transform_matrices``      bases and projections of the last two
==========================  ==============================================================
"""
