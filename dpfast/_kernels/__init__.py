"""Everything compiled is here. Kernels check nothing; the public functions that call them check everything.

**Lanes.** Streams run side by side: a *row* is one instant of a *bundle* of streams, as many as fill two vector
registers (16 float64 or 32 float32 with AVX-512). A signal is an array (time, lane), so that a recursion, which cannot
be vectorised in time, is vectorised over streams. Arrays of users, (stream, time), are transposed on the way in and
out, in squares that fit into registers; where streams lie side by side already, rows are copied. Filters by themselves
leave arrays as they are: ``filter_streams`` and ``filter_in_time`` take them either way.

**Tiles.** A kernel holds six rows in registers: enough sums in flight to keep two multiply-add units busy. What happens
to a tile is written once, as ordinary Python over rows, and traced when Numba compiles the loop around it (``simd``).

**Chunks.** A chain of stages passes over 480 rows of one signal at a time, which stay in the cache::

              one bundle, one chunk                    a tile
             ┌────────────────────────┐
     u    ──►│ history │▒▒▒▒▒▒▒▒▒▒▒▒▒▒│            lanes (streams) ──►
             └────┬───────────────────┘          ┌───────────────────┐
      prefilter, noise   one pass over the chunk │ row t             │  register 1 | register 2
             ┌────▼───────────────────┐          │ row t + 1         │
     v       │ history │▒▒▒▒▒▒▒▒▒▒▒▒▒▒│     time │ ...               │
             └────┬───────────────────┘       ▼  │ row t + 5         │
      decision feedback  another pass            └───────────────────┘
             ┌────▼───────────────────┐
     û       │ history │▒▒▒▒▒▒▒▒▒▒▒▒▒▒│          then the next chunk, and when time is over
             └────┬───────────────────┘          the next bundle
      target, squared error

Stages look back at the history above a chunk, where the end of the one before is moved. The loop over bundles, chunks
and stages is compiled too, and runs without the GIL on a range of bundles; Python deals out ranges to threads. It calls
the kernels of stages by their addresses: each is compiled by itself, when a chain first needs it.

**Bits.** Sums run from the oldest sample to the newest, with explicit multiply-adds and no fastmath: a stream depends
on (seed, its number) alone, whatever the lanes, tiles, chunks, threads or processes. Without multiply-adds in hardware
the last bits differ, and are those of plain Python (NUMBA_DISABLE_JIT=1, where the same functions run on arrays).

Others describe what is to run by ``signal_sources``, ``compiled_receivers``, ``compiled_mechanisms`` and
``compiled_channels``, run it by ``simulation``, and use the chains that it builds, ``Factors``, ``Equalizer``,
``BlockSums``, ``TwoLevelResponse``, ``StateSpace``, ``buffered_recursion``, ``zero_search``, ``section_pass``,
``shared_states``, ``matrix_tiles``, ``node_fft``, ``row_products``, ``gain_products``, ``column_limits``,
``singular_limits``, ``filter_streams.push``, ``filter_in_time``, ``block_estimates.estimate_live``,
``integer_fir.add_filtered``, ``discrete_gaussian.draw``, ``two_sided_geometric.draw_geometric``,
``table_draws.draw_table`` and ``threads.for_ranges``; the rest is for the kernels themselves.

=======================  =====================================================================
``_jit``                 the one place with Numba's options
``simd``                 rows as a Numba type; tracing
``tiles``                the shape of a tile; rows copied and filled
``simulated_noise``      a generator for each (seed, stream, purpose); normals, Markov chains
``exact_decisions``      decisions of exact probability, from random words
``discrete_gaussian``    exact discrete Gaussians, made of them; for releases
``two_sided_geometric``  exact two-sided geometrics; for releases
``table_draws``          exact draws from tables of probabilities; for releases
``integer_fir``          integer FIR filters, in exact sums; for releases
``factors``              the factors that a filter is made of
``fir_and_sections``     FIR and second-order sections
``first_pass``           levels, sections and noise in one pass
``state_space_pass``     systems of several inputs and outputs with one state
``shared_states``        such systems on arrays (streams, channel, time), untransposed
``section_pass``         sections with the bits of scipy, for impulse responses
``taps_in_time``         taps on arrays (streams, time), untransposed
``sections_in_time``     sections on such arrays, lanes being sections
``sections_in_squares``  sections on many streams of such arrays, transposed between registers
``filter_in_time``       all of these, on several threads
``filter_streams``       filters that keep their state, for streams that lie side by side
``equalizer``            decision feedback and its rules; recursions of many poles
``integer_draws``        symmetric noise on the integers, for simulations
``shared_draws``         noise that several blocks share
``tree_draws``           noise that they share in groups of groups
``buffered_recursion``   sums of decaying exponentials, and their inverse
``block_sums``           sums of blocks with noise, and the periodic Kalman filter behind them
``block_estimates``      that filter on live data, from a state that is kept; for releases
``randomized_response``  two levels, told by chance
``posterior``            the posterior mean behind sums or responses, for a chain of levels
``partition``            block sums whose partition reacts to what was published, and their posterior mean
``transposition``        arrays of users into rows and back
``zero_search``          sums over all zeros of a long polynomial, which find them
``matrix_tiles``         matrices at nodes of a circle, as tiles of rows
``node_fft``             FFTs of real rows, with nodes where butterflies leave them
``row_products``         what conjugate gradients do to such rows
``gain_products``        products with the curvature of the error of several streams
``column_limits``        what is taken off columns so that none is longer than its limit
``singular_limits``      what singular values at each frequency have beyond a limit
``denormals``            flush-to-zero while a kernel runs
``chain_program``        what a chain does, as data: signals and stages
``chain_layout``         where signals and states lie among rows
``chain_fusion``         stages that run as one
``chain_parts``          what a chain under construction keeps
``chain_builder``        how a chain is put together
``kernel_calls``         kernels called by their addresses
``chain_stages``         a kernel for each kind of stage
``chain_loop``           the compiled loop over bundles, chunks and stages
``threads``              ranges on several threads
``chain_execute``        a chain on many streams
``signal_sources``       signals that are drawn, as stages of a chain
``compiled_receivers``   what makes estimates, as stages of a chain
``compiled_mechanisms``  what is published, as stages: one form for each kind of noise
``compiled_channels``    what is published of several streams together
``simulation``           mechanisms run: for errors, or for paths
=======================  =====================================================================
"""
