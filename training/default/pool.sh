#!/usr/bin/env bash
# Make training pairs from people's questions: each question with the passages that answer it, and
# with passages that do not, although BM25 and an embedding model rank them high in the pool of all
# sets. Takes 1.5 GB of disk, and half an hour on two cores with AVX-512, longer without. Pair
# files that exist already are not made again, so that the script can be interrupted.
# Run: bash training/default/pool.sh ../shared/data questions; then train with the configuration of
# this folder, with --data questions. With a third argument, bm25, no embedding model reads the pool:
# negatives are those that BM25 ranks high, and pairs of nearest sentences are not made. This takes
# eight minutes, and needs a folder of its own, such as questions-bm25, since pairs that are there stay;
# ../small.toml learns from such pairs and the scores of a teacher.
set -euo pipefail
data=$1 work=$2 negatives=${3:-embedding} here=$(dirname "$0")
mkdir -p "$work"

# Every n-th question of a set.
every() { awk -v every="$2" 'NR % every == 0' "$data/qa/$1/queries.tsv"; }

# One pool of all passages. Every set brings its own ids.
if [ ! -e "$work/pool.index" ]; then
  zcat "$data"/qa/*/passages.jsonl.gz > "$work/pool.jsonl"
  cat "$data"/trec-dl21-passage/corpus.jsonl "$data"/dl22-teacher/corpus.jsonl \
    | awk -F'"' '!seen[$4]++' >> "$work/pool.jsonl" # topics of both years share passages
  birchbark index "$work/pool.jsonl" --to "$work/pool.index"
fi
[ "$negatives" = bm25 ] || birchbark index attach "$work/pool.index" --vectors birchbark-embedding-l6 --segments whole

# Ten negatives per question: of its first 60 passages by BM25, ten of the 25 that the embedding model
# ranks highest (or BM25). Those that a teacher finds relevant are left out in training. Grade 1 of MEDIQA is
# "related", which is not an answer. Of the large sets, and of those with few passages, every second
# to fifth question is used.
for path in "$data"/qa/*/; do
  name=$(basename "$path") answers=1 each=1
  case $name in
    mediqa) answers=2 ;;
    faq) each=2 ;;
    medquad) each=3 ;;
    shifts-wiki | stackfaq) each=4 ;;
    squad) each=5 ;;
  esac
  [ -e "$work/$name.tsv" ] && continue
  every "$name" "$each" > "$work/$name.queries"
  awk -v least="$answers" '{ print $1, $2, $3, ($4 < least ? 0 : $4) }' "$path/qrels.txt" > "$work/$name.qrels"
  birchbark retrieve "$work/pool.index" --queries "$work/$name.queries" --depth 60 --output "$work/$name.bm25.run"
  if [ "$negatives" = bm25 ]; then
    cp "$work/$name.bm25.run" "$work/$name.run"
  else
    birchbark rerank "$work/pool.index" --run "$work/$name.bm25.run" --queries "$work/$name.queries" \
      --model birchbark-embedding-l6 --set segments=whole --set read_segments=all --set aggregate=max \
      --set first_stage_weight=0 --set depth=60 --output "$work/$name.run"
  fi
  birchbark pairs "$work/pool.jsonl" --queries "$work/$name.queries" --qrels "$work/$name.qrels" \
    --run "$work/$name.run" --ranks 1-25 --negatives 10 --random-negatives 1 --output "$work/$name.tsv"
done

# The sentence of each passage that is nearest to the question.
if [ "$negatives" != bm25 ] && [ ! -e "$work/msmarco-dev.sentences.tsv" ]; then
  every msmarco-dev 3 > "$work/sentences.queries"
  birchbark pairs "$work/pool.jsonl" --queries "$work/sentences.queries" --qrels "$work/msmarco-dev.qrels" \
    --run "$work/msmarco-dev.run" --ranks 1-25 --negatives 8 --segments sentences --best-segments 1 \
    --scoring-model birchbark-embedding-l6 --output "$work/msmarco-dev.sentences.tsv"
fi

# Questions with texts that share their words and answer nothing: source code, and other questions.
if [ ! -e "$work/nq.noise.tsv" ]; then
  python "$here/noise.py" "$work"/{msmarco-dev,nq}.queries > "$work/noise.jsonl"
  birchbark index "$work/noise.jsonl" --to "$work/noise.index" --replace
  cat "$work/pool.jsonl" "$work/noise.jsonl" > "$work/pool-noise.jsonl"
  for name in msmarco-dev nq; do
    every "$name" 5 > "$work/$name.noise.queries"
    birchbark retrieve "$work/noise.index" --queries "$work/$name.noise.queries" --depth 8 --output "$work/$name.noise.run"
    birchbark pairs "$work/pool-noise.jsonl" --queries "$work/$name.noise.queries" --qrels "$work/$name.qrels" \
      --run "$work/$name.noise.run" --ranks 1-8 --negatives 6 --output "$work/$name.noise.tsv"
  done
fi

# Passages of MS MARCO: judged topics of 2021, and topics of 2022 with the ranking of SPLADE++, a
# larger model trained on MS MARCO, in place of judgments.
birchbark pairs "$work/pool.jsonl" --queries "$data/trec-dl21-passage/queries.tsv" \
  --qrels "$data/trec-dl21-passage/qrels.with-text.txt" --random-negatives 40 --output "$work/dl21.tsv"
awk '{ print $1, 0, $3, ($4 <= 5 ? 3 : $4 <= 15 ? 2 : $4 <= 40 ? 1 : 0) }' \
  "$data"/dl22-teacher/runs/SPLADE*.run > "$work/dl22.qrels"
birchbark pairs "$work/pool.jsonl" --queries "$data/dl22-teacher/queries.tsv" \
  --qrels "$work/dl22.qrels" --run "$data"/dl22-teacher/runs/BM25.*.run --negatives 60 \
  --random-negatives 20 --output "$work/dl22.tsv"

# SciFact's training claims, without two that are also test claims.
grep -vP '^(871|1291)\t' "$data/scifact/queries.train.tsv" > "$work/scifact.queries"
birchbark index "$data/scifact/corpus.jsonl" --to "$work/scifact.index" --replace
birchbark retrieve "$work/scifact.index" --queries "$work/scifact.queries" --depth 30 --output "$work/scifact.run"
birchbark pairs "$data/scifact/corpus.jsonl" --queries "$work/scifact.queries" \
  --qrels "$data/scifact/qrels.train.txt" --run "$work/scifact.run" --negatives 12 --output "$work/scifact.tsv"

# Tweets, sentences that answer questions, and the collections of the study default-ingredients.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done
