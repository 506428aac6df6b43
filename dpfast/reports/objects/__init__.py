"""Pictures of single objects: what their methods ``plot`` draw, and the small ones of notebooks.

Others use ``object_plots``::

    filter_plots, model_plots, mechanism_plots, channel_plots, release_plot ──► frequency_axis
                      └──► object_plots

===================  ====================================================
``object_plots``     the kinds of pictures of each class; one, all, small
``filter_plots``     gain and impulse response of a target
``model_plots``      spectrum and a sample path of a model
``mechanism_plots``  gains, errors over frequency and by step, a path
``channel_plots``    gains and errors of several streams
``release_plot``     published estimates with their band
``frequency_axis``   axes of frequency and time, with units where known
===================  ====================================================
"""
