"""Compare what was published with the model of the design, and estimate the error from it alone.

Nothing here sees a private signal: all of it is computed from v, which is published.

=====================  ========================================================
``verdict``            ``ModelCheck``: what was found, in words and numbers
``channel_check``      v of filters against the model
``block_check``        v of block sums against the model
``whitening``          values of a known covariance become white
``fourth_moments``     how far a model is from a normal one
``noise_imitation``    noise by a seed, for what is compared with v
``simulated_chances``  chances of departures, right for any law of inputs and noise
``whiteness_tests``    mean, power and spectrum of what should be white
``joint_verdict``      what was found of several streams, in words and numbers
``joint_check``        v of several streams behind a matrix of filters against their models
``joint_block_check``  v of block sums of several streams against their models
``joint_whitening``    channels of a known covariance become white together
``joint_whiteness``    means, powers, spectra and dependence of channels that should be white
``pair_coherence``     whether two channels depend on one another
``error_from_v``       the error of a linear receiver, estimated from v
``block_error``        the error of the receiver of block sums, likewise
``adapted_estimates``  what a receiver that is fitted to v makes of it
=====================  ========================================================
"""
