#!/usr/bin/env bash
# Make training pairs from people's questions: each question with the passages that answer it, and
# with passages that BM25 finds in the pool of all sets. Needs up to 1.3 GB of disk.
# Run: bash training/questions/pool.sh ../shared/data questions; then train with the configurations
# of this folder, with --data questions.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"

# One pool of all passages. Every set brings its own ids.
zcat "$data"/qa/*/passages.jsonl.gz > "$work/pool.jsonl"
cat "$data"/trec-dl21-passage/corpus.jsonl "$data"/dl22-teacher/corpus.jsonl \
  | awk -F'"' '!seen[$4]++' >> "$work/pool.jsonl" # topics of both years share passages
birchbark index "$work/pool.jsonl" --to "$work/pool.index"

# Ten hard negatives per question. Those that a teacher finds relevant are left out in training.
# Grade 1 of MEDIQA is "related", which is not an answer. Of the large sets, and of those with few
# passages, every second to fifth question is used.
for path in "$data"/qa/*/; do
  name=$(basename "$path") answers=1 every=1
  case $name in
    mediqa) answers=2 ;;
    faq) every=2 ;;
    medquad) every=3 ;;
    shifts-wiki | stackfaq) every=4 ;;
    squad) every=5 ;;
  esac
  awk -v every="$every" 'NR % every == 0' "$path/queries.tsv" > "$work/$name.queries"
  awk -v least="$answers" '{ print $1, $2, $3, ($4 < least ? 0 : $4) }' "$path/qrels.txt" > "$work/$name.qrels"
  birchbark retrieve "$work/pool.index" --queries "$work/$name.queries" --depth 60 --output "$work/$name.run"
  birchbark pairs judged "$work/pool.jsonl" --queries "$work/$name.queries" --qrels "$work/$name.qrels" \
    --run "$work/$name.run" --negatives 10 --random-negatives 1 --output "$work/$name.tsv"
done

# Passages of MS MARCO: judged topics of 2021, and topics of 2022 with the ranking of SPLADE++, a
# larger model trained on MS MARCO, in place of judgments.
birchbark pairs judged "$work/pool.jsonl" --queries "$data/trec-dl21-passage/queries.tsv" \
  --qrels "$data/trec-dl21-passage/qrels.with-text.txt" --random-negatives 40 --output "$work/dl21.tsv"
awk '{ print $1, 0, $3, ($4 <= 5 ? 3 : $4 <= 15 ? 2 : $4 <= 40 ? 1 : 0) }' \
  "$data"/dl22-teacher/runs/SPLADE*.run > "$work/dl22.qrels"
birchbark pairs judged "$work/pool.jsonl" --queries "$data/dl22-teacher/queries.tsv" \
  --qrels "$work/dl22.qrels" --run "$data"/dl22-teacher/runs/BM25.*.run --negatives 60 \
  --random-negatives 20 --output "$work/dl22.tsv"
