"""The page of a sweep, its pictures and what they show.

Others use ``sweep_page`` of the module of its name, and ``sweep_pictures``.

======================  =============================================================
``sweep_page``          what was simulated, found, and how to do it again
``sweep_pictures``      all pictures of a sweep
``lines_and_panels``    which lines and panels there are
``axis_titles``         names of axes, and labels in words
``rmse_curves``         errors over an axis
``panel_curves``        what is drawn in one panel of these, and percent
``convergence``         estimates over the number of streams
``prefilter_gains``     gains of prefilters of several streams
``sweep_sample_paths``  sample paths over the true output
``short_sentences``     what was found, in three sentences
``winner_map``          which mechanism errs least, over two axes
``single_panel``        one picture in given axes, of a single task
======================  =============================================================
"""
