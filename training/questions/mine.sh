#!/usr/bin/env bash
# Make pairs for a second training run: passages that a trained model finds hard, best sentences of
# passages, source code as negatives, and SciFact's training claims. Takes 30 minutes on two cores.
# Pair files that exist already are not made again, so that the script can be interrupted.
# Run: bash training/questions/mine.sh ../shared/data questions questions-1/model
set -euo pipefail
data=$1 work=$2 model=$3 here=$(dirname "$0")

# Every n-th question of a set.
every() { awk -v every="$2" 'NR % every == 0' "$work/$1.queries"; }

# Of each question's first 12 passages by BM25, those that the model ranks highest.
for set in msmarco-dev:1 nq:2 boolq:4 clapnq-quotesum:1 mtrag:1 stackexchange:2 faq:6 squad:6 medquad:10; do
  name=${set%:*}
  [ -e "$work/$name.mined.tsv" ] && continue
  every "$name" "${set#*:}" > "$work/$name.mined.queries"
  awk -F'[ \t]' 'NR == FNR { chosen[$1]; next } $1 in chosen' "$work/$name.mined.queries" "$work/$name.run" \
    > "$work/$name.first.run"
  birchbark rerank "$work/pool.index" --run "$work/$name.first.run" --queries "$work/$name.mined.queries" \
    --model "$model" --precision int8 --segments whole --read-segments 1 --read-pairs all --embedding none \
    --aggregate max --first-stage-weight 0 --depth 12 --output "$work/$name.mined.run"
  birchbark pairs judged "$work/pool.jsonl" --queries "$work/$name.mined.queries" --qrels "$work/$name.qrels" \
    --run "$work/$name.mined.run" --ranks 1-12 --negatives 7 --random-negatives 1 --output "$work/$name.mined.tsv"
done

# The sentence of each passage that the model scores highest.
for name in msmarco-dev nq; do
  [ -e "$work/$name.sentences.tsv" ] && continue
  every "$name" 4 > "$work/$name.sentences.queries"
  birchbark pairs judged "$work/pool.jsonl" --queries "$work/$name.sentences.queries" --qrels "$work/$name.qrels" \
    --run "$work/$name.run" --ranks 1-20 --negatives 6 --segments sentences --best-segments 1 \
    --scoring-model "$model" --output "$work/$name.sentences.tsv"
done

# Questions with texts that share their words and answer nothing: source code, and other questions.
python "$here/noise.py" "$work"/{msmarco-dev,nq}.queries > "$work/noise.jsonl"
birchbark index "$work/noise.jsonl" --to "$work/noise.index" --replace
cat "$work/pool.jsonl" "$work/noise.jsonl" > "$work/pool-noise.jsonl"
for name in msmarco-dev nq; do
  every "$name" 5 > "$work/$name.noise.queries"
  birchbark retrieve "$work/noise.index" --queries "$work/$name.noise.queries" --depth 8 --output "$work/$name.noise.run"
  birchbark pairs judged "$work/pool-noise.jsonl" --queries "$work/$name.noise.queries" --qrels "$work/$name.qrels" \
    --run "$work/$name.noise.run" --ranks 1-8 --negatives 6 --output "$work/$name.noise.tsv"
done

# SciFact's training claims, without two that are also test claims.
grep -vP '^(871|1291)\t' "$data/scifact/queries.train.tsv" > "$work/scifact.queries"
birchbark index "$data/scifact/corpus.jsonl" --to "$work/scifact.index" --replace
birchbark retrieve "$work/scifact.index" --queries "$work/scifact.queries" --depth 30 --output "$work/scifact.run"
birchbark pairs judged "$data/scifact/corpus.jsonl" --queries "$work/scifact.queries" \
  --qrels "$data/scifact/qrels.train.txt" --run "$work/scifact.run" --negatives 12 --output "$work/scifact.tsv"

# Pair sets as they are: tweets, and sentences that answer questions.
for name in mb wikiqa selqa; do ln -sfn "$(realpath "$data/$name")" "$work/$name"; done
