"""Training: models that hold state, initialise, step and infer; training models made of inference models."""

from sabir.training._adafactor import Adafactor
from sabir.training._adapters import Adapter, Adapters, adapters, load_adapters
from sabir.training._adaptive import LAMB, AdaBelief, Lion, NAdam, RAdam, RMSprop
from sabir.training._averaging import averaged
from sabir.training._classification import (
    IGNORED,
    BinaryCrossEntropy,
    CrossEntropy,
    Dice,
    Focal,
    KLDivergence,
    NegativeLogLikelihood,
)
from sabir.training._ctc import CTC
from sabir.training._distributing import distribute
from sabir.training._embeddings import Contrastive, CosineEmbedding, Triplet
from sabir.training._fitting import Epoch, Progress
from sabir.training._image_folders import ImageFolder
from sabir.training._log import TrainingLog
from sabir.training._lora import LoRA, merge_adapters
from sabir.training._losses import Loss, LossFunction
from sabir.training._metrics import METRICS
from sabir.training._models import initialization_model, step_model
from sabir.training._modes import trained_weights
from sabir.training._named_losses import LOSSES
from sabir.training._optimizers import SGD, Adagrad, Adam, AdamW, Optimizer, StandardOptimizer
from sabir.training._parameters import Group
from sabir.training._planning import Decision, TrainingPlan
from sabir.training._plateau import ReduceOnPlateau
from sabir.training._preparing import prepare, training_plan
from sabir.training._progress_bar import ProgressBar
from sabir.training._regression import Huber, MeanAbsoluteError, MeanSquaredError, SmoothL1
from sabir.training._saving import strip_training
from sabir.training._schedules import (
    Constant,
    Cosine,
    Linear,
    OneCycle,
    Polynomial,
    Schedule,
    Step,
    WarmUp,
)
from sabir.training._session import TrainingSession
from sabir.training._sharing import Tied, Untied
from sabir.training._state import State
from sabir.training._stopping import EarlyStopping
from sabir.training._streamed import StreamedMetric
from sabir.training._tables import Table, read_table
from sabir.training._tensorboard import TensorBoardLog
from sabir.training._traffic import Traffic

__all__ = [
    "CTC",
    "IGNORED",
    "LAMB",
    "LOSSES",
    "METRICS",
    "SGD",
    "AdaBelief",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adapter",
    "Adapters",
    "BinaryCrossEntropy",
    "Constant",
    "Contrastive",
    "Cosine",
    "CosineEmbedding",
    "CrossEntropy",
    "Decision",
    "Dice",
    "EarlyStopping",
    "Epoch",
    "Focal",
    "Group",
    "Huber",
    "ImageFolder",
    "KLDivergence",
    "Linear",
    "Lion",
    "LoRA",
    "Loss",
    "LossFunction",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "NAdam",
    "NegativeLogLikelihood",
    "OneCycle",
    "Optimizer",
    "Polynomial",
    "Progress",
    "ProgressBar",
    "RAdam",
    "RMSprop",
    "ReduceOnPlateau",
    "Schedule",
    "SmoothL1",
    "StandardOptimizer",
    "State",
    "Step",
    "StreamedMetric",
    "Table",
    "TensorBoardLog",
    "Tied",
    "Traffic",
    "TrainingLog",
    "TrainingPlan",
    "TrainingSession",
    "Triplet",
    "Untied",
    "WarmUp",
    "adapters",
    "averaged",
    "distribute",
    "initialization_model",
    "load_adapters",
    "merge_adapters",
    "prepare",
    "read_table",
    "step_model",
    "strip_training",
    "trained_weights",
    "training_plan",
]
