#!/usr/bin/env bash
# Make the training pairs for the studies of passages: SciFact's training claims, most of which have one
# relevant abstract, and questions about long articles, with candidates by BM25. Takes a few minutes on
# two cores. Questions for evaluation are written to separate files; no question is in both sets.
# Run: bash training/passages/pool.sh ../shared/data passages-pool; then the studies with
# --data passages-pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Link all data, so that one folder serves training and studies.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

# Two of SciFact's training claims are also test claims.
grep -vP '^(871|1291)\t' "$data/scifact/queries.train.tsv" > "$work/scifact.queries.tsv"
awk 'NR % 24 == 3' "$data/cmuqa-long/queries.tsv" > "$work/cmuqa.queries.tsv"
awk 'NR % 96 == 13' "$data/cmuqa-long/queries.tsv" > "$work/cmuqa.test.tsv" # not trained on by the default model
awk 'NR == FNR { queries[$1]; next } $1 in queries' "$work/cmuqa.test.tsv" "$data/cmuqa-long/qrels.txt" \
  > "$work/cmuqa.test.qrels.txt"

pairs() { # NAME COLLECTION QRELS OPTION...
  local name=$1 collection=$2 qrels=$3
  shift 3
  birchbark pairs judged "$collection" --queries "$work/$name.queries.tsv" --qrels "$qrels" \
    --run "$work/$name.run" "$@"
}
for name in scifact cmuqa; do
  case $name in
    scifact) folder=scifact qrels=$data/scifact/qrels.train.txt ;;
    cmuqa) folder=cmuqa-long qrels=$data/cmuqa-long/qrels.txt ;;
  esac
  birchbark index "$data/$folder/corpus.jsonl" --to "$work/$name.index"
  birchbark retrieve "$work/$name.index" --queries "$work/$name.queries.tsv" --depth 30 --output "$work/$name.run"
  # Documents as windows here; below, each document is the one segment that the default model scores highest.
  pairs "$name" "$data/$folder/corpus.jsonl" "$qrels" --negatives 4 --segments windows:150/50 \
    --output "$work/$name.windows.tsv"
done
pairs scifact "$data/scifact/corpus.jsonl" "$data/scifact/qrels.train.txt" --negatives 3 \
  --segments windows:75/25 --best-segments 1 --output "$work/scifact.best.tsv"
