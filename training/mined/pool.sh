#!/usr/bin/env bash
# Make pairs whose negatives a trained model finds hard: of each question's first 20 passages by BM25,
# those that the model ranks highest. Takes about 20 minutes on two cores.
# Run: bash training/mined/pool.sh ../shared/data questions default-1/model
# (training/default/pool.sh makes the folder `questions`)
set -euo pipefail
data=$1 work=$2 model=$3

# Of most sets, every second to fifth question is used.
for set in msmarco-dev:1 nq:1 clapnq-quotesum:1 mtrag:1 boolq:2 stackexchange:2 squad:3 faq:4 medquad:5; do
  name=${set%:*} every=${set#*:}
  awk -v every="$every" 'NR % every == 0' "$work/$name.queries" > "$work/$name.mined.queries"
  awk -F'[ \t]' 'NR == FNR { chosen[$1]; next } $1 in chosen' "$work/$name.mined.queries" "$work/$name.run" \
    > "$work/$name.first.run"
  birchbark rerank "$work/pool.index" --run "$work/$name.first.run" --queries "$work/$name.mined.queries" \
    --model "$model" --precision int8 --segments whole --read-segments 1 --read-pairs all --embedding none \
    --aggregate max --first-stage-weight 0 --max-length 160 --depth 20 --output "$work/$name.mined.run"
  birchbark pairs judged "$work/pool.jsonl" --queries "$work/$name.mined.queries" --qrels "$work/$name.qrels" \
    --run "$work/$name.mined.run" --ranks 1-10 --negatives 8 --random-negatives 1 --output "$work/$name.mined.tsv"
done

# SciFact's training claims, without two that are also test claims.
grep -vP '^(871|1291)\t' "$data/scifact/queries.train.tsv" > "$work/scifact.queries"
birchbark index "$data/scifact/corpus.jsonl" --to "$work/scifact.index"
birchbark retrieve "$work/scifact.index" --queries "$work/scifact.queries" --depth 30 --output "$work/scifact.run"
birchbark pairs judged "$data/scifact/corpus.jsonl" --queries "$work/scifact.queries" \
  --qrels "$data/scifact/qrels.train.txt" --run "$work/scifact.run" --negatives 12 --output "$work/scifact.tsv"

# Pair sets as they are: tweets, and sentences that answer questions.
for name in mb wikiqa selqa; do ln -sfn "$(realpath "$data/$name")" "$work/$name"; done
