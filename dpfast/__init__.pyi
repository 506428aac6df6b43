from dpfast._support.errors import (
    AccuracyWarning as AccuracyWarning,
    ConvergenceWarning as ConvergenceWarning,
    DataError as DataError,
    DesignError as DesignError,
    MissingExtraError as MissingExtraError,
    ModelWarning as ModelWarning,
    PaleyWienerError as PaleyWienerError,
    ReleaseError as ReleaseError,
    ToleranceWarning as ToleranceWarning,
    UnstableFilterError as UnstableFilterError,
)
from dpfast.design.adaptive.adapt import (
    adapt as adapt,
)
from dpfast.design.adaptive.adaptation import (
    Adaptation as Adaptation,
)
from dpfast.design.adaptive_blocks import adaptive_blocks as adaptive_blocks
from dpfast.design.block_sums import block_sums as block_sums
from dpfast.design.bounds.additive import additive_bound as additive_bound
from dpfast.design.bounds.any_receiver import gaussian_bound as gaussian_bound
from dpfast.design.bounds.linear_mean import linear_mean_bound as linear_mean_bound
from dpfast.design.bounds.of_mechanism import bounds_of as bounds_of
from dpfast.design.bounds.unbiased import unbiased_bound as unbiased_bound
from dpfast.design.decision_feedback import (
    decision_feedback as decision_feedback,
    ideal_feedback as ideal_feedback,
)
from dpfast.design.horizon.binary_tree import binary_tree as binary_tree
from dpfast.design.horizon.buffered_toeplitz import buffered_toeplitz as buffered_toeplitz
from dpfast.design.horizon.compressive import compressive as compressive
from dpfast.design.horizon.decayed_sum import decayed_sum as decayed_sum
from dpfast.design.horizon.fourier import fourier_perturbation as fourier_perturbation
from dpfast.design.horizon.optimal_factorization import optimal_factorization as optimal_factorization
from dpfast.design.horizon.shared_noise import shared_noise as shared_noise
from dpfast.design.horizon.square_root import square_root as square_root
from dpfast.design.horizon.tree import tree as tree
from dpfast.design.lmmse import lmmse as lmmse
from dpfast.design.optimal import optimal as optimal
from dpfast.design.perturbation import (
    input_perturbation as input_perturbation,
    output_perturbation as output_perturbation,
)
from dpfast.design.programs.joint_program import (
    JointProgram as JointProgram,
    JointVariables as JointVariables,
    optimal_program as optimal_program,
)
from dpfast.design.programs.prefilter_program import (
    Program as Program,
    feedback_program as feedback_program,
    lmmse_program as lmmse_program,
)
from dpfast.design.randomized_response import randomized_response as randomized_response
from dpfast.design.robust import robust as robust
from dpfast.design.unbounded_sum import unbounded_sum as unbounded_sum
from dpfast.design.zero_forcing import zero_forcing as zero_forcing
from dpfast.filters.filter_matrix import (
    FilterMatrix as FilterMatrix,
    differences as differences,
    total as total,
)
from dpfast.filters.filter import (
    Filter as Filter,
    Filtered as Filtered,
)
from dpfast.filters.filter_stream import FilterStream as FilterStream
from dpfast.filters.toeplitz import (
    Toeplitz as Toeplitz,
    polynomial_decay as polynomial_decay,
    running_sum as running_sum,
)
from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism as AdaptiveBlockMechanism
from dpfast.mechanisms.best_choice import (
    Choice as Choice,
    ChoiceRow as ChoiceRow,
)
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism as BlockChannelsMechanism
from dpfast.mechanisms.block_mechanism import BlockMechanism as BlockMechanism
from dpfast.mechanisms.bound import Bound as Bound
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism as ChannelsMechanism
from dpfast.mechanisms.constant import (
    Constant as Constant,
    constant as constant,
)
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism as MatrixMechanism
from dpfast.mechanisms.mechanism import (
    Mechanism as Mechanism,
    Paths as Paths,
)
from dpfast.mechanisms.serialization.mechanism_file import (
    load as load,
    save as save,
)
from dpfast.mechanisms.unbounded_mechanism import UnboundedMechanism as UnboundedMechanism
from dpfast.privacy.privacy import Privacy as Privacy
from dpfast.releases.audit.all_attacks import audit as audit
from dpfast.releases.audit.findings import Audit as Audit
from dpfast.releases.batch import (
    Release as Release,
    release as release,
)
from dpfast.releases.estimates_table import write_table as write_table
from dpfast.releases.guarantee import Guarantee as Guarantee
from dpfast.releases.integer.exact_block_sums import ExactBlockSums as ExactBlockSums
from dpfast.releases.integer.exact_forms import exact as exact
from dpfast.releases.integer.exact_input_noise import ExactInputNoise as ExactInputNoise
from dpfast.releases.integer.exact_mechanism import ExactMechanism as ExactMechanism
from dpfast.releases.integer.exact_posterior import ExactPosteriorBlocks as ExactPosteriorBlocks
from dpfast.releases.integer.exact_posterior import ExactPosteriorResponse as ExactPosteriorResponse
from dpfast.releases.integer.exact_response import ExactResponse as ExactResponse
from dpfast.releases.integer.inputs import Inputs as Inputs
from dpfast.releases.ledger.ledger import Ledger as Ledger
from dpfast.releases.model_check.adapted_estimates import AdaptedEstimates as AdaptedEstimates
from dpfast.releases.model_check.verdict import ModelCheck as ModelCheck
from dpfast.releases.arbiters.place import Postgres as Postgres
from dpfast.releases.engines.bytewax_flow import bytewax_sink as bytewax_sink
from dpfast.releases.engines.bytewax_flow import bytewax_source as bytewax_source
from dpfast.releases.engines.closed_pieces import close_bins as close_bins
from dpfast.releases.engines.closed_pieces import cut_pieces as cut_pieces
from dpfast.releases.engines.shards import ColumnNames as ColumnNames
from dpfast.releases.engines.shards import Shards as Shards
from dpfast.releases.engines.spark_batches import spark_publisher as spark_publisher
from dpfast.releases.engines.spark_batches import spark_source as spark_source
from dpfast.releases.persons.declared_persons import Persons as Persons
from dpfast.releases.persons.person_events import Events as Events
from dpfast.releases.published_steps import Published as Published
from dpfast.releases.reading import read_release as read_release
from dpfast.releases.stream import Stream as Stream
from dpfast.releases.stream_opening import open_stream as open_stream
from dpfast.reports.plot import plot as plot
from dpfast.reports.report import report as report
from dpfast.signals.arma import ARMA as ARMA
from dpfast.signals.events.declared_counts import count_events as count_events
from dpfast.signals.events.declared_span import Span as Span
from dpfast.signals.events.query_columns import Query as Query
from dpfast.signals.independent_levels import IndependentLevels as IndependentLevels
from dpfast.signals.markov_chain import MarkovChain as MarkovChain
from dpfast.signals.model import Model as Model
from dpfast.signals.vector_arma import VectorARMA as VectorARMA
from dpfast.simulation.best_mechanism import best as best
from dpfast.simulation.monte_carlo import monte_carlo as monte_carlo
from dpfast.simulation.recorded_streams import (
    Evaluation as Evaluation,
    evaluate as evaluate,
)
from dpfast.simulation.study import (
    Comparison as Comparison,
    Result as Result,
    Study as Study,
)
from dpfast.simulation.sweep.result import Sweep as Sweep
from dpfast.simulation.sweep.rows import (
    Cell as Cell,
    Row as Row,
)
from dpfast.simulation.sweep.sweep import sweep as sweep

__version__: str
