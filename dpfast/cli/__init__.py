"""The command ``dpfast``: a file for each of its words, with the options, the settings and the run.

Others use nothing of it::

    main ──┬──► design, evaluate, study, example, show, audit, ledger ──► options, output
           └──► release ──► follow_release, read_release, dry_run ──► declared_store, release_input
                                                                      ──► person_options, channel_options

=====================  ===========================================
``main``               dispatch, errors, exit status
``parser``             options that name the word they do not know
``options``            options that several commands share
``output``             the files that a command leaves
``console``            standard output that may be closed
``design``             ``dpfast design``
``design_model``       its models, described or fitted to a log
``design_channels``    the same for several streams together
``evaluate``           ``dpfast evaluate``
``evaluate_channels``  the same for several streams together
``study``              ``dpfast study``
``study_inputs``       its grids of several streams
``example``            ``dpfast example``
``show``               ``dpfast show``
``audit``              ``dpfast audit``
``ledger``             ``dpfast ledger``
``release``            ``dpfast release``
``release_input``      what it reads of a file
``release_checks``     options that it refuses together
``declared_store``     what its store declares, and where it is
``dry_run``            ``dpfast release --dry-run``
``follow_release``     ``dpfast release --follow``
``read_release``       ``dpfast release --read``
``person_options``     ``dpfast release --person``
``channel_options``    ``dpfast release --adjacency``: groups as inputs
``group_options``      ``dpfast release --groups``
``settings_option``    ``--settings``: options from a TOML file
``shell_completion``   ``dpfast --completion``
=====================  ===========================================
"""
