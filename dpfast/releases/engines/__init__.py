"""Engines of streams publish through stores: they deliver at least once, and nothing is published twice.

Others use ``Shards``, and what an engine takes of it::

    events ──► closed_pieces ──► pieces ──► an engine: bytewax_flow, spark_batches ──► shards ──► Stream

==================  =============================================================
``shards``          ``Shards``: fixed sets of streams, each with a store
``declared_set``    one declaration for all shards at a place
``open_shard``      ``Shard``: publishes pieces, and the table of estimates
``pieces``          inputs of a shard for some steps, closed and durable
``closed_pieces``   a public clock, or the end of a file, closes them
``bytewax_flow``    a source and a sink of Bytewax
``spark_batches``   a function for Spark's ``foreachBatch``
==================  =============================================================
"""
