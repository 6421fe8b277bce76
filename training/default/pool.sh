#!/usr/bin/env bash
# The pairs that the default model is distilled from: texts and queries of the pair sets, crops of
# texts as further queries, candidates by BM25. A minute on two cores; 370 MB.
# Run: bash training/default/pool.sh ../shared/data pool; then, in this order, the trainings beside it
# with --data pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Links to all data, so that one folder serves trainings and studies; what is read is named below.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

# Collections as pairs. DL19, TIME, CACM, Cranfield and SciFact's test part have no place here.
# Two claims of SciFact's train part are claims of its test part, word by word.
grep -vP '^(871|1291)\t' "$data/scifact/queries.train.tsv" > "$work/scifact.queries.tsv"
awk 'NR % 24 == 1' "$data/cmuqa-long/queries.tsv" > "$work/cmuqa.queries.tsv"
birchbark pairs judged "$data/trec-dl21-passage/corpus.jsonl" --queries "$data/trec-dl21-passage/queries.tsv" \
  --qrels "$data/trec-dl21-passage/qrels.with-text.txt" --in-collection 100 --output "$work/dl21.tsv"
birchbark pairs judged "$data/trec-dl21-passage/corpus.jsonl" --queries "$data/trec-dl21-passage/queries.tsv" \
  --qrels "$data/trec-dl21-passage/qrels.with-text.txt" --segments sentences --output "$work/dl21.sentences.tsv"
birchbark pairs judged "$data/scifact/corpus.jsonl" --queries "$work/scifact.queries.tsv" \
  --qrels "$data/scifact/qrels.train.txt" --in-collection 6 --segments sentences --output "$work/scifact.sentences.tsv"
birchbark pairs judged "$data/cmuqa-long/corpus.jsonl" --queries "$work/cmuqa.queries.tsv" \
  --qrels "$data/cmuqa-long/qrels.txt" --segments sentences --output "$work/cmuqa.sentences.tsv"
birchbark index "$data/scifact/corpus.jsonl" --to "$work/scifact.index"
birchbark retrieve "$work/scifact.index" --queries "$work/scifact.queries.tsv" --depth 30 --output "$work/scifact.run"
birchbark pairs judged "$data/scifact/corpus.jsonl" --queries "$work/scifact.queries.tsv" \
  --qrels "$data/scifact/qrels.train.txt" --run "$work/scifact.run" --negatives 12 --output "$work/scifact.tsv"

# One pool of texts, and candidates in it for every query.
birchbark pairs unpack "$data/mb/trec-2011.tsv" "$data"/wikiqa/{train,dev,test}.tsv "$data"/selqa/{dev,test}.tsv \
  "$work"/{dl21,dl21.sentences,scifact.sentences,cmuqa.sentences}.tsv --skip-bad --crops 20000 --to "$work/pool"
birchbark index "$work/pool/documents.jsonl" --to "$work/pool.index"
birchbark retrieve "$work/pool.index" --queries "$work/pool/queries.tsv" --depth 200 --output "$work/pool.run"
birchbark pairs judged "$work/pool/documents.jsonl" --queries "$work/pool/queries.tsv" --qrels "$work/pool/qrels.txt" \
  --run "$work/pool.run" --negatives 8 --in-collection 2 --output "$work/pool.tsv"
