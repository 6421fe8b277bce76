// What was read for an answer, in words?

const LATE = 0.7;  // of the time budget; an earlier answer is not complete because a document or the embedding had used its share
const count = number => number.toLocaleString("en");
const list = names => names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");
export const modelName = name => name.replace(/, (int8)\b/, " ($1)").replace(/ cross-encoder$/, "").replace(/^cosine of (.*) embeddings/, "$1");
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const NO_RESULTS = "No document matches this query. Try fewer or different words.";
export const NONE_WITH_FILTERS = "No document matches this query with these filters.";

function duration(ms) {
  if (ms < 100) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s`;
}

// Returns the status, notes on what else was read or not, and, if more could be read, the label of a button.
export function describe(answer, about, final, filtered) {
  const { exact, hits, models, timings_ms: times } = answer, { unit } = about;
  const read = answer.pairs - answer.embedded, time = duration(times.total);
  if (!hits.length) return { text: filtered ? NONE_WITH_FILTERS : NO_RESULTS, notes: missing(answer) };
  if (!final) return { text: `First results after ${duration(times.first_stage)}; ${read ? `${count(read)} ${unit} read` : "reading"}…`, notes: "" };
  if (!models.length) return { text: `Ranked by ${firstStage(about)} in ${time}.`, notes: missing(answer) };
  const readers = list(models.map(modelName)), ranked = `ranked by ${rankedBy(answer, about, read)}`, notes = notesOn(answer, unit);
  if (exact && read) return { text: `Read ${count(read)} of ${count(answer.segments)} ${unit} in ${time} with ${readers}; ${ranked}.`, notes };
  if (exact) return { text: `Compared the vectors of ${counted(answer.by_vectors, "document")} in ${time}; ${ranked}.`, notes: "" };
  const planned = answer.planned === null || read > answer.planned ? "" : ` of at most ${count(answer.planned)} planned`;
  const reason = times.total < LATE * about.budget_ms ? "Not complete" : "Time was up";
  if (read) return { text: `${reason}: ${count(read)}${planned} ${unit} read in ${time} with ${readers}; ${ranked}.`, notes, retry: "Read the rest" };
  return { text: `No time to read with ${readers}: ${ranked} alone, in ${time}.`, notes, retry: `Read the ${unit}` };
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

// What the embedding read, and what no model could have read.
function notesOn(answer, unit) {
  const embedded = [answer.embedded && `${count(answer.embedded)} ${unit}`, answer.by_vectors && `the stored vectors of ${counted(answer.by_vectors, "document")}`].filter(Boolean);
  const left = answer.unsplit_characters, cut = answer.cut_query_tokens;
  return [
    answer.embedding && embedded.length ? `The embedding scored ${list(embedded)}.` : "",
    cut ? `The last ${counted(cut, "token")} of the query were used to find candidates, but not read by the models.` : "",
    missing(answer),
    left ? `Not considered: ${counted(left, "character")} of long documents, because they are very long or time ran out.` : "",
  ].filter(Boolean).join(" ");
}
