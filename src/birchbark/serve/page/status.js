// What was found and read for an answer, in words?

const count = number => number.toLocaleString("en");
const list = names => names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");
export const modelName = name => name.replace(/, (int8)\b/, " ($1)").replace(/ cross-encoder$/, "").replace(/^cosine of (.*) embeddings/, "$1");
const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
const NO_RESULTS = "No document matches this query. Try fewer or different words.";
const NONE_WITH_FILTERS = "No document matches this query with these filters.";
const NOTHING_YET = "Nothing found yet; not all documents were searched.";
const UNANSWERED = "Probably none of these documents answers this.";
const WITHOUT_WORDS = "None of these documents has the words of the query; they are nearest in meaning.";

function duration(ms) {
  if (ms < 100) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s`;
}

// The line above the results. top: how many results were asked for. ms: since the search began. reading: whether more is being read.
export function summary({ hits, exact, scored, top }, { ms, reading }) {
  const found = hits.length ? `${hits.length < top ? "" : "best "}${counted(hits.length, "result")}` : "no results";
  const state = reading ? ["still reading"] : exact ? [] : [scored ? "not all read" : "not read yet"];
  const line = [found, duration(ms), ...state].join(" · ");
  return line[0].toUpperCase() + line.slice(1);
}

// Why nothing was found. filters: those beside the filters in the query.
export const noResults = ({ parsed }, filters) => Object.keys(filters).length || parsed.filters.length ? NONE_WITH_FILTERS : NO_RESULTS;

// What must be seen beside the results. withoutWords: whether no result has the words of the query.
export function notice(answer, { filters, withoutWords }) {
  if (!answer.hits.length) return [answer.exact ? noResults(answer, filters) : NOTHING_YET, missing(answer)].filter(Boolean).join(" ");
  return [answer.unanswered ? UNANSWERED : "", withoutWords ? WITHOUT_WORDS : "", missing(answer)].filter(Boolean).join(" ");
}

// Who has read and ranked.
export function reading(answer, about) {
  const { exact, models } = answer, { unit } = about, read = answer.pairs - answer.embedded;
  if (!models.length) return `Ranked by ${firstStage(about)}.`;
  const names = list(models.map(modelName)), ranked = `ranked by ${rankedBy(answer, about, read)}`;
  if (exact && read) return `Read ${count(read)} of ${count(answer.segments)} ${unit} with ${names}; ${ranked}.`;
  if (exact) return `Compared the vectors of ${counted(answer.by_vectors, "document")}; ${ranked}.`;
  const planned = answer.planned === null || read > answer.planned ? "" : `, of at most ${count(answer.planned)}`;
  return read ? `Read ${count(read)} ${unit} so far${planned}, with ${names}; ${ranked}.` : `Not read yet with ${names}; ${ranked} alone.`;
}

export const firstStage = about => about.first_stage.replace("bm25", "BM25").replace("rm3", "RM3").replace("tfidf", "tf-idf").replaceAll("+", " + ");

function rankedBy(answer, about, read) {
  const embedding = answer.embedding && (answer.embedded || answer.by_vectors);
  return rankers(about, embedding, read || answer.exact);
}

// What ranks, in words. embedding, model: whether these do, in addition to the first stage.
export const rankers = (about, embedding = about.embedding, model = true) =>
  list([firstStage(about), ...(embedding ? ["embedding"] : []), ...(model ? about.kinds : [])]);

const missing = answer => answer.missing_shards.length ? `Documents may be missing: ${list(answer.missing_shards)} of the index did not answer.` : "";

// What the embedding read, and what no model can read.
export function notes(answer, { unit }) {
  const embedded = [answer.embedded && `${count(answer.embedded)} ${unit}`, answer.by_vectors && `the stored vectors of ${counted(answer.by_vectors, "document")}`].filter(Boolean);
  const left = answer.exact ? answer.unsplit_characters : 0, cut = answer.cut_query_tokens;
  return [
    answer.embedding && embedded.length ? `The embedding scored ${list(embedded)}.` : "",
    cut ? `The last ${counted(cut, "token")} of the query were used to find candidates, but not read by the models.` : "",
    left ? `Of very long documents, only the parts with most of the query’s words are read; ${counted(left, "character")} were left out.` : "",
  ].filter(Boolean).join(" ");
}
