"""What is the default of each option, parameter and recipe key?

Each default is defined once, in this module. The command line, the library's dataclasses, stages,
recipes and the service all read it from here. This module imports nothing but typing, so that
`birchbark --help` stays fast. Comments name the papers that values come from.
"""

from __future__ import annotations

from typing import Final, Literal

# Models
MODEL: Final = "birchbark-minilm-l6"  # ships with the package
SMALL_MODEL: Final = "birchbark-minilm-l3"  # ships with the package
EMBEDDING: Final = "birchbark-embedding-l6"  # ships with the package
STATIC_EMBEDDING: Final = "birchbark-static"  # ships with the package
EMBEDDING_BASE: Final = "all-MiniLM-L6-v2"  # in a Python package of its own
HUB_REVISION: Final = "main"
DEVICE: Final = "cpu"
PRECISION: Final[Literal["auto", "fp32", "int8"]] = "auto"
# Computed in int8 by `auto`; `make bench NAME=search` compares it. As the main scorer, an
# embedding is not.
INT8_MODELS: Final = (MODEL, SMALL_MODEL)
INT8_EMBEDDINGS: Final = (EMBEDDING,)

# Reading and indexing
ENCODING: Final = "utf-8"
TOPIC_FIELDS: Final[tuple[str, ...]] = ()  # the title of a topic, the first text of an object
ANALYZER: Final = "english"
FILE_ANALYZER: Final = "english+parts"  # of a folder's files
WEIGHT_STEPS: Final = 100  # per 1 of a term's weight, to which learned sparse vectors are rounded
INDEXED_FIELD: Final = "contents"
INDEXED_FIELD_PARTS: Final = ("title", "text")
FILE_NAMES_FIELD: Final = "file_names"  # of the index of a folder: the words of paths
FILE_NAMES_WEIGHT: Final = 0.5  # docs/how-to/search-a-folder.md
READ_FIELDS: Final = ("text",)  # which models read after the title
VECTOR_BITS: Final = 16
STATIC_BITS: Final = 8  # static embeddings
TOKEN_VECTOR_BITS: Final = 8  # late interaction: a vector per token

# First stage: BM25 and RM3 with Anserini's parameters
FIRST_STAGE: Final = "bm25"
BM25_K1: Final = 0.9
BM25_B: Final = 0.4
IDF_DOCUMENTS: Final[Literal["field", "all"]] = "field"  # as in Lucene
RM3_DOCUMENTS: Final = 10
RM3_TERMS: Final = 10
RM3_ORIGINAL_WEIGHT: Final = 0.5
RM3_MAX_DF_SHARE: Final = 0.1
RETRIEVAL_DEPTH: Final = 1000

# Re-ranking
RERANKING_DEPTH: Final = 100
PASSAGE_SIZE: Final = 120  # words; the study default-segments compares sizes
SEGMENTS: Final = f"passages:{PASSAGE_SIZE}"
WINDOW_SIZE: Final = 150  # words; Steensland 2021 (the passages paper)
WINDOW_OVERLAP: Final = 50
TITLE_LIMIT: Final = 50  # words; shorter titles are prepended to segments
PREPENDED_TITLE_CHARACTERS: Final = 1000  # a longer title is not: segments would repeat it
DOCUMENT_SCORER_SEGMENTS: Final = f"windows:{WINDOW_SIZE}/{WINDOW_OVERLAP}"  # PARADE
TOP_WEIGHTS: Final = (1.0, 0.5, 0.25)  # weights of a document's best segments
AGGREGATION: Final = "topmean:" + ",".join(f"{weight:g}" for weight in TOP_WEIGHTS)
FIRST_STAGE_WEIGHT: Final = 0.2
FIRST_STAGE_SCALE: Final[Literal["raw", "max", "minmax"]] = "max"
FUSED_BY: Final[Literal["ranks", "scores"]] = "ranks"
RANK_CONSTANT: Final = 60.0  # Cormack, Clarke and Büttcher 2009
EMBEDDING_WEIGHT: Final = 0.5  # unless the model states another one
READ_SEGMENTS: Final = "3"  # of each document; `make bench NAME=search` compares plans
READ_DOCUMENTS: Final = "all"
READ_PAIRS: Final = "30"
EMBED_SEGMENTS: Final = "2"  # of each document without stored vectors
EMBED_DOCUMENTS: Final = "60"  # of the candidates with static vectors only
TEXT_SEGMENTS: Final = 3  # of each text to rank
EMBED_TEXT_SEGMENTS: Final = 1
HIGHLIGHTS: Final = 3  # sentences of each text
DUO_DEPTH: Final = 10
DUO_AGGREGATION: Final = "sum"
RESCORE_DEPTH: Final = 20  # best documents by int8, which are rescored in fp32

# Searching
TOP: Final = 10

# Evaluation
MEASURES: Final = ("AP", "nDCG@10", "RR@10", "P@5")
SEED: Final = 0
SIGNIFICANCE_LEVEL: Final = 0.05

# Training
TRAINING_MAX_LENGTH: Final = 256  # tokens of an input
OBJECTIVE: Final = "pointwise"
LEARNS: Final = "all"  # which weights
HEAD: Final = "base"  # where the head's first weights come from
LIST_TEXTS: Final = 8
PASSAGES: Final = 16  # of a document, which PARADE reads in training
PASSAGE_VECTORS: Final = "pooler"  # of PARADE
DROPOUT: Final = 0.1
BATCH: Final = 32  # lists
LEARNING_RATE: Final = 2e-5
WARMUP: Final = 0.1  # share of all steps
WEIGHT_DECAY: Final = 0.01
CLIP: Final = 1.0  # largest norm of the gradient
TRAINING_PRECISION: Final = "fp32"
MINING_DEPTH: Final = 50  # texts per query
TRAINING_BATCH_TOKENS: Final = 16_384  # for 6 layers of width 384, 4,096 tokens need 1.5 GB
MARGIN: Final = 1.0
TEMPERATURE: Final = 1.0
MASKED_SHARE: Final = 0.15  # Devlin et al. 2019
VALIDATION_MEASURE: Final = "AP"
KEEP: Final[Literal["best", "last"]] = "best"  # the model of which validation

# Masked language models
NEW_WORDS: Final = 1000  # of an extended vocabulary

# Studies
DATA_ROOT: Final = "../shared/data"
TUNING_FOLDS: Final = 5
TUNING_STEP: Final = 0.1
TUNED_MEASURE: Final = "AP"
TUNED_SEGMENTS: Final = 3

# Bench
BENCH_QUESTIONS: Final = 30

# Service
HOST: Final = "127.0.0.1"
PORT: Final = 8000
BUDGET_SECONDS: Final = 2.0
MAX_SECONDS: Final = 30.0
MAX_REQUESTS: Final = 256
MAX_REQUEST_BYTES: Final = 4_000_000

# Clusters: what a shard occupies
SHARD_CPUS: Final = 1
SHARD_GPUS: Final = 0.0
