"""What studies, sweeps and comparisons look like: pages, pictures and tables of them.

Others use ``report``, ``plot``, the ``report_...`` functions of the commands, ``release/`` and ``objects/``. Matplotlib
is used here alone::

    comparison, evaluation, mechanism_page, sweep/, release/, objects/ ──► html_page ──► page_script, hover_points
                                                                   └──► matplotlib_helpers, glossary, mechanism_styles

========================  =========================================
``comparison``            families side by side
``channels_comparison``   mechanisms of several streams side by side
``declared_inputs``       what a release declares for a design
``design_answer``         what to take, before all details
``evaluation``            mechanisms on a historical log
``evaluation_sentences``  what errs least on each series
``mechanism_page``        the page of a mechanism, of one stream or several
``paper_example``         the example of Le Ny 2013, reproduced
``paper_example_text``    what of it is printed
``plot``                  ``plot``: a picture of a sweep or a study
``report``                ``report``: the page of a sweep, mechanism or release
``matplotlib_helpers``    figures without pyplot
``mechanism_styles``      colours and lines of mechanisms
``study_dot_plot``        dot plots of simulated errors
``sample_paths``          paths of mechanisms on one stream
``glossary``              what pages say in words
``html_page``             a page in one file
``page_script``           sorting and values, the one script of pages
``hover_points``          values of the points of a picture
``sweep/``                the page and pictures of a sweep
``objects/``              pictures of single objects: `plot`
``release/``              the page of a release
========================  =========================================
"""
