#!/usr/bin/env bash
# Make the pairs that the default model is distilled on: texts and queries of the pair sets, crops of
# texts as additional queries, and candidates by BM25. Takes a minute on two cores, and 370 MB of disk.
# Run: bash training/default/pool.sh ../shared/data pool; then train with the configurations of this
# folder in order, with --data pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Link all data, so that one folder serves training and studies; the files that are read are named below.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

# Pairs from collections. DL19, TIME, CACM, Cranfield and SciFact's test claims are evaluation data.
# Two of SciFact's training claims are also test claims.
grep -vP '^(871|1291)\t' "$data/scifact/queries.train.tsv" > "$work/scifact.queries.tsv"
awk 'NR % 24 == 1' "$data/cmuqa-long/queries.tsv" > "$work/cmuqa.queries.tsv"
birchbark pairs judged "$data/trec-dl21-passage/corpus.jsonl" --queries "$data/trec-dl21-passage/queries.tsv" \
  --qrels "$data/trec-dl21-passage/qrels.with-text.txt" --random-negatives 100 --output "$work/dl21.tsv"
birchbark pairs judged "$data/trec-dl21-passage/corpus.jsonl" --queries "$data/trec-dl21-passage/queries.tsv" \
  --qrels "$data/trec-dl21-passage/qrels.with-text.txt" --segments sentences --output "$work/dl21.sentences.tsv"
birchbark pairs judged "$data/scifact/corpus.jsonl" --queries "$work/scifact.queries.tsv" \
  --qrels "$data/scifact/qrels.train.txt" --random-negatives 6 --segments sentences --output "$work/scifact.sentences.tsv"
birchbark pairs judged "$data/cmuqa-long/corpus.jsonl" --queries "$work/cmuqa.queries.tsv" \
  --qrels "$data/cmuqa-long/qrels.txt" --segments sentences --output "$work/cmuqa.sentences.tsv"
birchbark index "$data/scifact/corpus.jsonl" --to "$work/scifact.index"
birchbark retrieve "$work/scifact.index" --queries "$work/scifact.queries.tsv" --depth 30 --output "$work/scifact.run"
birchbark pairs judged "$data/scifact/corpus.jsonl" --queries "$work/scifact.queries.tsv" \
  --qrels "$data/scifact/qrels.train.txt" --run "$work/scifact.run" --negatives 12 --output "$work/scifact.tsv"

# One pool of all texts, and candidates from it for every query.
birchbark pairs to-collection "$data/mb/trec-2011.tsv" "$data"/wikiqa/{train,dev,test}.tsv "$data"/selqa/{dev,test}.tsv \
  "$work"/{dl21,dl21.sentences,scifact.sentences,cmuqa.sentences}.tsv --skip-bad --crops 20000 --to "$work/pool"
birchbark index "$work/pool/documents.jsonl" --to "$work/pool.index"
birchbark retrieve "$work/pool.index" --queries "$work/pool/queries.tsv" --depth 200 --output "$work/pool.run"
birchbark pairs judged "$work/pool/documents.jsonl" --queries "$work/pool/queries.tsv" --qrels "$work/pool/qrels.txt" \
  --run "$work/pool.run" --negatives 8 --random-negatives 2 --output "$work/pool.tsv"
