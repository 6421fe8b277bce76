#!/usr/bin/env bash
# Make the training pairs for the studies of passages, with negatives that BM25 ranks high: questions asked
# of Bing with the passages of MS MARCO that answer them, and windows of TIME's articles with its queries.
# Takes a minute on two cores. Bing's questions for evaluation are written to separate files; no question is
# in both sets. TIME's queries are divided into five folds, each of which training can hold out.
# Run: bash studies/birchbark_studies/training/passages/pool.sh ../shared/data passages-pool; then the studies with
# --data passages-pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Link all data, so that one folder serves training and studies.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

# Every fifth query is in the same fold.
awk -F'\t' '{ fold[NR % 5] = fold[NR % 5] (NR > 5 ? ", " : "") "\"" $1 "\"" }
  END { printf "["; for (n = 0; n < 5; n++) printf "%s[%s]", (n ? ", " : ""), fold[n]; print "]" }' \
  "$data/time/queries.tsv" > "$work/time.folds.json"

# Every twentieth question of Bing is for evaluation.
zcat "$data/qa/msmarco-dev/passages.jsonl.gz" > "$work/bing.passages.jsonl"
awk 'NR % 20 == 7' "$data/qa/msmarco-dev/queries.tsv" > "$work/bing.test.tsv"
awk 'NR % 20 != 7' "$data/qa/msmarco-dev/queries.tsv" > "$work/bing.queries.tsv"
awk '{ print $1, $2, $3, ($4 < 1 ? 0 : $4) }' "$data/qa/msmarco-dev/qrels.txt" > "$work/bing.qrels"
awk 'NR == FNR { queries[$1]; next } $1 in queries' "$work/bing.test.tsv" "$work/bing.qrels" > "$work/bing.test.qrels"

pairs() { # NAME COLLECTION QUERIES QRELS OPTION...
  local name=$1 collection=$2 queries=$3 qrels=$4
  shift 4
  birchbark index "$collection" --to "$work/$name.index" --replace
  birchbark retrieve "$work/$name.index" --queries "$queries" --depth 30 --output "$work/$name.run"
  birchbark pairs "$collection" --queries "$queries" --qrels "$qrels" --run "$work/$name.run" "$@"
}
pairs bing "$work/bing.passages.jsonl" "$work/bing.queries.tsv" "$work/bing.qrels" \
  --negatives 10 --output "$work/bing.tsv"
pairs time "$data/time/corpus.jsonl" "$data/time/queries.tsv" "$data/time/qrels.txt" \
  --negatives 4 --segments windows:150/50 --output "$work/time.windows.tsv"
