"""Blocks that end when enough of their sum is unknown: the partition along published values, over all paths."""


def follow(steps, chance, probability, least, longest, released):
    """The times of releases up to the last step, and how likely each path makes what is released there.

    Parameters
    ----------
    steps : (paths, time) of int
        Inputs above the lowest one.
    chance : (paths,)
        Of each path; all that is computed from it is exact where these are fractions.
    probability : callable
        P(N = n) of an array of integers, up to a factor.
    least : number
        The variance of a sum with which a block ends.
    released : callable
        Gives the noisy sum of steps that is released at a time, of a block of so many steps.

    Returns
    -------
    dict from a time to (paths,)
    """
    found, begin, weights, n = {}, 0, chance, steps.shape[1]
    while True:
        total = weights.sum()
        for end in range(begin + 1, n + 1):
            sums = steps[:, begin:end].sum(axis=1)
            mean = (weights * sums).sum() / total
            if (weights * sums**2).sum() / total - mean**2 >= least or end - begin == longest:
                break
        else:
            return found
        found[end - 1] = probability(released(end - 1, end - begin) - sums)
        left = weights * found[end - 1]
        weights, begin = (left if left.sum() > 0 else weights), end
