#!/usr/bin/env bash
# What the studies of documents by passages learn from: SciFact's train queries, which have one relevant
# abstract as a rule, and some questions about long articles, each with what BM25 finds. Some minutes on
# two cores. Questions that are measured on are written beside them; none is in both.
# Run: bash training/passages/pool.sh ../shared/data passages-pool; then the studies with
# --data passages-pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Links to all data, so that one folder serves trainings and studies.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

# Two claims of SciFact's train part are claims of its test part, word by word.
grep -vP '^(871|1291)\t' "$data/scifact/queries.train.tsv" > "$work/scifact.queries.tsv"
awk 'NR % 24 == 3' "$data/cmuqa-long/queries.tsv" > "$work/cmuqa.queries.tsv"
awk 'NR % 96 == 13' "$data/cmuqa-long/queries.tsv" > "$work/cmuqa.test.tsv" # the default model knows none
awk 'NR == FNR { asked[$1]; next } $1 in asked' "$work/cmuqa.test.tsv" "$data/cmuqa-long/qrels.txt" \
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
  # Documents as their windows; and as the one part that the default model thinks the best.
  pairs "$name" "$data/$folder/corpus.jsonl" "$qrels" --negatives 4 --segments windows:150/50 \
    --output "$work/$name.windows.tsv"
done
pairs scifact "$data/scifact/corpus.jsonl" "$data/scifact/qrels.train.txt" --negatives 3 \
  --segments windows:75/25 --best 1 --output "$work/scifact.best.tsv"
