"""What do requests and answers look like? Checked on their way in, described in /openapi.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from birchbark.collection.jsonl import ID_NAMES, TEXT_NAMES
from birchbark.serve.limits import (
    ID_CHARACTERS,
    MOST_DEPTH,
    MOST_DOCUMENTS,
    MOST_HITS,
    MOST_TEXTS,
    QUERY_CHARACTERS,
    TEXT_CHARACTERS,
)

QueryText = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_CHARACTERS)]
GivenText = Annotated[str, StringConstraints(max_length=TEXT_CHARACTERS)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
By = Literal["bert", "embedding", "first_stage"]
KNOWN_ID = {"type": ["string", "integer", "null"], "minLength": 1, "maxLength": ID_CHARACTERS}


def _one_of(names: tuple[str, ...]) -> dict[str, Any]:
    given = {"not": {"type": "null"}}
    return {"anyOf": [{"required": [name], "properties": {name: given}} for name in names]}


DOCUMENT: dict[str, Any] = {  # what `document_of` asks for
    "type": "object",
    "properties": dict.fromkeys(ID_NAMES, KNOWN_ID),
    "allOf": [_one_of(ID_NAMES), _one_of(("title", *TEXT_NAMES))],
}


class Asked(BaseModel):
    """A request: what is not known is refused, so that no misspelt choice is passed over."""

    model_config = ConfigDict(extra="forbid")


class Refusal(BaseModel):
    """What is wrong with a request, or with the service."""

    message: str = Field(description="All of it, in one line.")
    detail: str = Field(description="The same, where Jina's clients look for it.")
    what: str = ""
    found: str = ""
    wanted: str = ""
    remedy: str = ""


class SearchRequest(Asked):
    """A search. What it does not say is as the service was started."""

    query: QueryText = Field(examples=["how long do I have to return a parcel"])
    top: int = Field(10, ge=1, le=MOST_HITS, description="Hits to give.")
    by: By = Field(
        "bert",
        description="What ranks: BERT over the first stage's candidates, mixed with its scores; "
        "an embedding alone over the same candidates; or the first stage alone.",
    )
    depth: int | None = Field(None, ge=1, le=MOST_DEPTH, description="Candidates that BERT reads.")
    first_stage_weight: Share | None = Field(
        None, description="a in a·first stage + (1 - a)·evidence."
    )
    weights: list[Share] | None = Field(
        None,
        min_length=1,
        max_length=20,
        description="Of a document's best segments, the best first.",
        examples=[[1, 0.5, 0.25]],
    )
    budget_ms: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="Milliseconds that the answer may take."
    )
    filters: dict[str, GivenText] = Field(
        default_factory=dict, description="Field → value that hits must have."
    )


class EvidenceShape(BaseModel):
    """A segment that counts for a hit: weight · score is its part of the hit's evidence."""

    start: int = Field(description="First character of the segment in the document's contents.")
    end: int = Field(description="The character behind the segment.")
    text: str = Field(description="What the model read.")
    score: float = Field(description="Probability of relevance.")
    weight: float
    before: str = Field(description="What stands before it in the contents, or the end of that.")
    after: str = Field(description="What stands behind it, or the beginning of that.")


class HitShape(BaseModel):
    """A ranked document; score = first_stage + embedding + evidence."""

    doc_id: str
    title: str
    score: float
    first_stage: float
    embedding: float
    evidence: float
    compared: float | None = Field(description="By a duo model, where one compared the best hits.")
    settled: bool = Field(description="False where time did not suffice to read the document.")
    lead: str = Field(description="The beginning of its text.")
    segments: list[EvidenceShape]


class Timings(BaseModel):
    """In milliseconds since it was asked. waited: for a turn; first_stage: until its hits came."""

    waited: float
    first_stage: float
    total: float


class SearchAnswer(BaseModel):
    """Hits, best first."""

    query: str
    hits: list[HitShape]
    exact: bool = Field(
        description="Whether the hits are those of reading all candidates: false where time or "
        "capacity did not suffice, and the first stage's order filled up."
    )
    candidates: int = Field(description="Of the first stage, as many as may be read.")
    settled: int = Field(description="Candidates that were read.")
    pairs: int = Field(description="Segments that were read, or remembered, for this query.")
    timings_ms: Timings


class DocumentShape(BaseModel):
    """A document, and for a query the score of each of its segments."""

    doc_id: str
    title: str
    fields: dict[str, str]
    contents: str = Field(description="Title and text: what offsets count characters of.")
    segments: list[EvidenceShape] | None = None


class DocumentsRequest(Asked):
    """Documents to add; those with a known id are replaced."""

    documents: list[dict[str, Any]] = Field(
        min_length=1,
        max_length=MOST_DOCUMENTS,
        description="As lines of JSONL: id, title, text, and any further fields.",
        examples=[[{"id": "gifts", "title": "Gift cards", "text": "Valid for three years."}]],
        json_schema_extra={"items": DOCUMENT},
    )


class Written(BaseModel):
    """What is on disk, and found by searches that begin now."""

    added: int = 0
    replaced: int = 0
    deleted: int = 0


class RerankRequest(BaseModel):
    """As Cohere's and Jina's clients ask: further fields are theirs, and change nothing here."""

    query: QueryText
    documents: list[GivenText | dict[str, Any]] = Field(max_length=MOST_TEXTS)
    model: str | None = None
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False

    @field_validator("documents")
    @classmethod
    def _texts(cls, documents: list[str | dict[str, Any]]) -> list[str | dict[str, Any]]:
        for one in documents:
            text = one.get("text") if isinstance(one, dict) else one
            if not isinstance(text, str) or len(text) > TEXT_CHARACTERS:
                raise ValueError(f"a text of up to {TEXT_CHARACTERS} characters")
        return documents

    @property
    def texts(self) -> list[str]:
        """The text of each document."""
        return [one["text"] if isinstance(one, dict) else one for one in self.documents]


class TeiRequest(BaseModel):
    """As text-embeddings-inference is asked."""

    query: QueryText
    texts: list[GivenText] = Field(max_length=MOST_TEXTS)
    raw_scores: bool = False
    return_text: bool = False
    truncate: bool = False


class AttentionRequest(Asked):
    """A query and a text that the model reads together."""

    query: QueryText
    text: GivenText
