"""Which fields do requests and responses have?

Requests are validated against these models, and /openapi.json describes them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from birchbark import defaults
from birchbark.records import DOC_ID_NAMES, TEXT_NAMES
from birchbark.retrieve.filters import parse_filters
from birchbark.serve.limits import (
    MAX_DEPTH,
    MAX_DOCUMENTS,
    MAX_HITS,
    MAX_ID_CHARACTERS,
    MAX_QUERY_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    MAX_TEXTS,
)

QueryText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
LimitedText = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARACTERS)]
TruncationDirection = Annotated[
    Literal["right", "Right"],
    Field(description="The end that is not read; only texts' right end can be cut off."),
]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MAX_HITS, description="Number of hits to return.")]
RankedBy = Annotated[
    Literal["bert", "embedding", "first_stage", "nearest"],
    Field(
        description="How hits are ranked: by BERT, mixed with the first stage; by an embedding "
        "model alone, over the same candidates; by the first stage alone; or by the embedding's "
        "stored vectors, over all documents."
    ),
]
Budget = Annotated[
    float | None,
    Field(gt=0, allow_inf_nan=False, description="Milliseconds that the search may take."),
]
Sort = Annotated[
    Annotated[str, StringConstraints(pattern=r"^-?.+$", max_length=200)] | None,
    Field(
        description="Field whose order the best hits are returned in, - in front of it for "
        "descending order: -modified for the newest first. Null: the best first."
    ),
]
LITERAL = 'Whether nothing in the query is an operator, as for "-Wall".'
Literally = Annotated[bool, Field(description=LITERAL)]
MAX_FILTERS = 20
MOST_FIELDS = 1_000  # of an object in a request, such as its filters
ID_SCHEMA = {
    "type": ["string", "integer", "null"],
    "minLength": 1,
    "maxLength": MAX_ID_CHARACTERS,
}


def _any_of(names: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema of an object in which at least one of these keys is set and not null."""
    present = {"not": {"type": "null"}}
    return {"anyOf": [{"required": [name], "properties": {name: present}} for name in names]}


DOCUMENT_SCHEMA: dict[str, Any] = {  # what `Document.from_dict` requires
    "type": "object",
    "properties": dict.fromkeys(DOC_ID_NAMES, ID_SCHEMA),
    "allOf": [_any_of(DOC_ID_NAMES), _any_of(("title", *TEXT_NAMES))],
}


class StrictRequest(BaseModel):
    """A request that must not have unknown fields, so that a misspelt one is an error."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, values: Any) -> Any:
        """Refuse an object with very many fields, of which each could be an error of its own."""
        within = [values, *values.values()] if isinstance(values, dict) else []
        for items in within[1:]:
            within += items if isinstance(items, list) else []
        if any(isinstance(one, dict) and len(one) > MOST_FIELDS for one in within):
            raise PydanticCustomError("too_many_fields", f"over {MOST_FIELDS:,} fields")
        return values


class ErrorResponse(BaseModel):
    """What is wrong with a request, or with the service."""

    message: str = Field(description="The complete error message, one line.")
    detail: str = Field(description="The same message, for Jina's clients.")
    what: str = ""
    found: str = ""
    wanted: str = ""
    remedy: str = ""


class SearchRequest(StrictRequest):
    """A search. Missing fields default to the service's settings."""

    query: QueryText = Field(
        description='Words or a question, and operators: "exact phrase", -word, -"phrase", '
        "field:value, -field:value, before:2024-05, after:2024-05-01.",
        examples=["how long do I have to return a parcel"],
    )
    top: Count = defaults.TOP
    by: RankedBy = "bert"
    depth: int | None = Field(
        None, ge=1, le=MAX_DEPTH, description="Number of candidates to re-rank."
    )
    first_stage_weight: Share | None = Field(
        None, description="The weight a in a · first stage + (1 - a) · evidence."
    )
    weights: list[Weight] | None = Field(
        None,
        min_length=1,
        max_length=20,
        description="Weights of a document's best segments, in descending order of their scores.",
        examples=[[1, 0.5, 0.25]],
    )
    budget_ms: Budget = None
    filters: dict[str, LimitedText] = Field(
        default_factory=dict,
        description="Filters of fields that all hits must meet: a value; docs/* for all that begin "
        "with docs/; pdf|html for any of several; 2024-03..2024-05 for a range; !code for all but "
        "code.",
    )
    sort: Sort = None
    literal: Literally = False


class SearchParameters(StrictRequest):
    """A search as a URL. Missing parameters default to the service's settings."""

    q: QueryText = Field(description="The query.")
    top: Count = defaults.TOP
    by: RankedBy = "bert"
    budget_ms: Budget = None
    filter: list[LimitedText] = Field(
        default_factory=list,
        max_length=MAX_FILTERS,
        description="FIELD=FILTER that all hits must meet; repeat for several fields.",
    )
    sort: Sort = None
    literal: Literally = False

    def as_request(self) -> SearchRequest:
        """Return the same search as a request; InputError for a malformed filter."""
        settings = self.model_dump(include={"literal", "top", "by", "budget_ms", "sort"})
        return SearchRequest(query=self.q, filters=parse_filters(self.filter), **settings)


class SegmentResponse(BaseModel):
    """A segment of a document."""

    start: int = Field(description="Offset of the segment in the document's contents.")
    end: int = Field(description="Offset of the character after the segment.")
    text: str
    page: int | None = Field(
        description="Number of the page, from 1; null if the document has no pages."
    )
    line: int | None = Field(
        description="Number of the line of a text file or of source code, from 1; null for others."
    )
    before: str = Field(description="A short context before the segment.")
    after: str = Field(description="A short context after the segment.")
    marks: list[tuple[int, int]] = Field(
        description="Start and end in `text` of each word that is a term of the query. Only the "
        "first 20 segments of a hit are marked, and the best 20 of a document."
    )


class EvidenceResponse(SegmentResponse):
    """A segment that contributes weight · score to the evidence of its hit."""

    sentence: tuple[int, int] | None = Field(
        description="Start and end in `text` of its sentence that says most about the query; "
        "null if the segment is one sentence, and after the first 20 segments of a hit."
    )
    score: float = Field(description="Probability of relevance.")
    weight: float


class HitResponse(BaseModel):
    """A ranked document; score = first_stage + embedding + evidence."""

    doc_id: str
    title: str
    score: float
    first_stage: float
    embedding: float
    evidence: float
    compared: float | None = Field(
        description="Score from pairwise comparisons with other hits; null if not compared."
    )
    stage: int = Field(
        description="The number of the stage that the score is from: its place in `models`, "
        "beginning at 1; 0 for the first stage. Hits of a later stage come before those of an "
        "earlier one, whatever their scores."
    )
    scored: bool = Field(
        description="False if the model has read nothing of the document, because of the reading "
        "plan or for lack of time; such a hit has no evidence."
    )
    probability: float | None = Field(
        description="That the document answers the query, from 0 to 1; null if it is not known."
    )
    copies: list[str] = Field(
        description="Ids of documents that are equal but for where they are; they are no hits."
    )
    lead: str = Field(description="The beginning of the document's text.")
    source: dict[str, str] = Field(
        description="Those fields of the document that tell where it is from: path, type and "
        "modified of a file; authors, journal, year, publish_time and doi of an article."
    )
    segments: list[EvidenceResponse] = Field(description="Largest contribution first.")
    snippet: SegmentResponse | None = Field(
        description="For a hit without evidence, the segment that fits the query best by the "
        "embedding or by its terms; null for other hits and if the document has no text."
    )


class FacetResponse(BaseModel):
    """A field that divides the candidates of a search."""

    field: str
    values: list[tuple[str, int]] = Field(
        description="Each value as it is used in `filters`, and the number of candidates that have "
        "it, most frequent first; at most twelve, of paths sixty."
    )
    others: int = Field(description="Number of further values, which fewer candidates have.")


class FacetsResponse(BaseModel):
    """What a search could be narrowed to."""

    facets: list[FacetResponse]


class SpellingResponse(BaseModel):
    """What a query may have meant."""

    correction: str | None = Field(
        description="The query without its likely misspellings, by the words of the documents; "
        "null if none seems misspelt."
    )


class Timings(BaseModel):
    """Milliseconds since the request arrived.

    waited: until the search began. first_stage: until the first stage's hits were known. total:
    until the end.
    """

    waited: float
    first_stage: float
    total: float


class QueryPartResponse(BaseModel):
    """A part of a query."""

    source: str = Field(description="The part as it was written.")
    kind: Literal["text", "phrase", "excluded", "filter"]
    value: str = Field(description="The text, or what the operator asks for.")
    field: str = Field(description="The field of a filter; else empty.")


class ParsedQueryResponse(BaseModel):
    """How a query was understood."""

    parts: list[QueryPartResponse] = Field(
        description="Text and operators in order; their sources are the query itself."
    )
    words: str = Field(description="What ranks, and what models read.")
    phrases: list[str] = Field(description="Phrases that all hits have.")
    excluded: list[str] = Field(description="Words and phrases that no hit has.")
    filters: list[tuple[str, str]] = Field(
        description="Fields and filters (see `filters` of the request) that all hits meet."
    )


class SearchResponse(BaseModel):
    """The hits of a search, best first."""

    query: str
    parsed: ParsedQueryResponse
    hits: list[HitResponse]
    max_score: float | None = Field(
        description="The highest score that a hit can have; null if there is no limit."
    )
    unanswered: bool = Field(
        description="Whether probably none of the documents answers the query, by the probability "
        "of the best hit; false if that is not known, as in an answer that is not exact."
    )
    exact: bool = Field(
        description="Whether the hits are the same as without a time budget; false if time or "
        "capacity did not suffice for everything that the reading plan asks for."
    )
    candidates: int = Field(
        description="Number of documents that a stage could read, added up over the stages."
    )
    scored: int = Field(
        description="Number of these documents that the models have read, or part of them."
    )
    pairs: int = Field(
        description="Number of segments read by a model or found in the cache, including those "
        "read by the embedding."
    )
    embedded: int = Field(description="Number of these segments that the embedding has read.")
    planned: int | None = Field(
        description="Maximum number of segments that the model reads by the reading plan; null if "
        "there is no maximum."
    )
    segments: int = Field(
        description="Number of segments in the documents of which any segment was considered."
    )
    by_vectors: int = Field(description="Number of documents scored by stored vectors.")
    unsplit_characters: int = Field(
        description="Number of characters of these documents that were not considered, because a "
        "document is very long or for lack of time."
    )
    cut_query_tokens: int = Field(
        description="Number of tokens at the end of the query that no model has read (see "
        "the key `query_tokens` of a ranker)."
    )
    missing_shards: list[str] = Field(
        description="The shards of the index that did not answer in time, of `birchbark cluster "
        "serve`; their documents may be missing among the hits."
    )
    models: list[str] = Field(
        description="The models that read segments, one per stage; empty if the first stage ranks."
    )
    embedding: str | None = Field(
        description="The embedding model that is mixed with the first of them; null for none."
    )
    timings_ms: Timings


class DocumentResponse(BaseModel):
    """A document; for a query, with the scores of its segments."""

    doc_id: str
    title: str
    fields: dict[str, str]
    contents: str = Field(description="Title and text; offsets refer to it.")
    segments: list[EvidenceResponse] | None = Field(
        None,
        description="The scored segments, in the order of the document; of a long document, the "
        "256 that contain most of the query's terms.",
    )
    read_query: str | None = Field(
        None, description="What the model has read of the query: its words, without operators."
    )
    segment_count: int | None = Field(
        None, description="Number of segments from which these were chosen."
    )
    unsplit_characters: int | None = Field(
        None, description="Number of characters of a very long document that are in none of these."
    )


class DocumentsRequest(StrictRequest):
    """Documents to add; a document with a known id replaces the existing one."""

    documents: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MAX_DOCUMENTS,
        description="Objects as in a JSONL file, with id, title, text, and any further fields.",
        examples=[[{"id": "gifts", "title": "Gift cards", "text": "Valid for three years."}]],
        json_schema_extra={"items": DOCUMENT_SCHEMA},
    )


class ReadyResponse(BaseModel):
    """That a search would be answered."""

    status: Literal["ready"] = "ready"
    failing: list[str] = Field(
        description="What does not work in the background, such as reading changed files, and why. "
        "Searches are answered all the same."
    )


class WriteResponse(BaseModel):
    """Numbers of changed documents; the changes are on disk and visible to the next search."""

    added: int = 0
    replaced: int = 0
    deleted: int = 0


class RerankRequest(StrictRequest):
    """A request from Cohere's or Jina's clients.

    Of their fields, `priority` and `max_chunks_per_doc` have no meaning here; of documents that are
    objects, only `text` is read.
    """

    query: QueryText
    documents: list[LimitedText | dict[str, Any]] = Field(max_length=MAX_TEXTS)
    model: str | None = None
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False
    priority: int | None = None
    max_chunks_per_doc: int | None = None
    rank_fields: list[Literal["text"]] | None = Field(None, max_length=1)
    max_tokens_per_doc: int | None = Field(
        None,
        ge=1,
        description="Read only so many tokens of a document; the header X-Truncated-Tokens counts "
        "what is not read. By default long documents are split.",
    )
    return_evidence: bool = Field(
        False,
        description="Also return the most relevant sentences of each result (not part of Cohere's "
        "API)",
    )

    @field_validator("documents")
    @classmethod
    def _check_texts(cls, documents: list[str | dict[str, Any]]) -> list[str | dict[str, Any]]:
        for number, document in enumerate(documents):
            text = document.get("text") if isinstance(document, dict) else document
            if not isinstance(text, str):
                raise ValueError(f"document {number} has no text under the key text")
            if len(text) > MAX_TEXT_CHARACTERS:
                raise ValueError(f"document {number} has over {MAX_TEXT_CHARACTERS:,} characters")
        return documents

    @property
    def texts(self) -> list[str]:
        """The text of each document."""
        return [d["text"] if isinstance(d, dict) else d for d in self.documents]


class TeiRequest(StrictRequest):
    """A request to re-rank texts from a client of text-embeddings-inference."""

    query: QueryText
    texts: list[LimitedText] = Field(max_length=MAX_TEXTS)
    raw_scores: bool = Field(False, description="Return the log-odds of scores, ln(s / (1 - s)).")
    return_text: bool = False
    return_evidence: bool = Field(
        False,
        description="Also return the most relevant sentences of each text (not part of TEI's API)",
    )
    truncate: bool | None = Field(
        False,
        description="Read only the beginning of texts that are longer than the model's input; the "
        "header X-Truncated-Tokens counts what is not read. By default long texts are split.",
    )
    truncation_direction: TruncationDirection = "right"


Texts = Annotated[list[LimitedText], Field(min_length=1, max_length=MAX_TEXTS)]
Dimensions = Annotated[
    int | None,
    Field(
        ge=1,
        description="Return only so many numbers of each vector, again of length 1. Models that "
        "were not trained for it lose much by this.",
    ),
]


class EmbeddingsRequest(StrictRequest):
    """A request from a client of OpenAI, whose field `user` has no meaning here."""

    input: LimitedText | Texts = Field(description="A text, or a list of texts; not of tokens.")
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Dimensions = None
    user: str | None = None

    @field_validator("input", mode="before")
    @classmethod
    def _check_texts(cls, given: Any) -> Any:
        texts = given if isinstance(given, list) else [given]
        if any(isinstance(text, int | list) for text in texts):
            raise ValueError(
                "expected a text, or a list of texts; tokens are not accepted, of which clients "
                "such as LangChain's OpenAIEmbeddings make lists unless they have the option "
                "check_embedding_ctx_length=False"
            )
        if not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError("expected a text, or a list of texts that is not empty")
        return given

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        return [self.input] if isinstance(self.input, str) else self.input


class TeiEmbedRequest(StrictRequest):
    """A request to embed texts from a client of text-embeddings-inference."""

    inputs: LimitedText | Texts
    normalize: Literal[True] = Field(True, description="Vectors always have length 1.")
    prompt_name: Literal["query", "document", "passage", "corpus"] | None = Field(
        None,
        description="Whether the texts are queries, which some models read after a prompt. The "
        "other names all stand for the model's prompt for documents.",
    )
    truncate: bool | None = Field(
        False,
        description="Read only the beginning of texts that are longer than the model's input; the "
        "header X-Truncated-Tokens counts what is not read. By default they are refused.",
    )
    truncation_direction: TruncationDirection = "right"
    dimensions: Dimensions = None

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        return [self.inputs] if isinstance(self.inputs, str) else self.inputs


class AttentionRequest(StrictRequest):
    """A query and a text, which the model reads as one input."""

    query: QueryText
    text: LimitedText
