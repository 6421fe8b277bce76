#!/usr/bin/env bash
# Make the training pairs for the studies of passages, with negatives that BM25 ranks high: questions asked
# of Bing with the passages of MS MARCO that answer them, SciFact's training claims, and questions about
# long articles. Takes a minute on two cores. Questions for evaluation are written to separate files;
# no question is in both sets.
# Run: bash studies/birchbark_studies/training/passages/pool.sh ../shared/data passages-pool; then the studies with
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

# Every twentieth question of Bing is for evaluation.
zcat "$data/qa/msmarco-dev/passages.jsonl.gz" > "$work/bing.passages.jsonl"
awk 'NR % 20 == 7' "$data/qa/msmarco-dev/queries.tsv" > "$work/bing.test.tsv"
awk 'NR % 20 != 7' "$data/qa/msmarco-dev/queries.tsv" > "$work/bing.queries.tsv"
awk '{ print $1, $2, $3, ($4 < 1 ? 0 : $4) }' "$data/qa/msmarco-dev/qrels.txt" > "$work/bing.qrels"
awk 'NR == FNR { queries[$1]; next } $1 in queries' "$work/bing.test.tsv" "$work/bing.qrels" > "$work/bing.test.qrels"

pairs() { # NAME COLLECTION QRELS OPTION...
  local name=$1 collection=$2 qrels=$3
  shift 3
  birchbark pairs "$collection" --queries "$work/$name.queries.tsv" --qrels "$qrels" \
    --run "$work/$name.run" "$@"
}
for name in bing scifact cmuqa; do
  case $name in
    bing) collection=$work/bing.passages.jsonl ;;
    scifact) collection=$data/scifact/corpus.jsonl qrels=$data/scifact/qrels.train.txt ;;
    cmuqa) collection=$data/cmuqa-long/corpus.jsonl qrels=$data/cmuqa-long/qrels.txt ;;
  esac
  birchbark index "$collection" --to "$work/$name.index" --replace
  birchbark retrieve "$work/$name.index" --queries "$work/$name.queries.tsv" --depth 30 --output "$work/$name.run"
  if [ "$name" = bing ]; then
    pairs bing "$collection" "$work/bing.qrels" --negatives 10 --output "$work/bing.tsv"
  else # documents as windows
    pairs "$name" "$collection" "$qrels" --negatives 4 --segments windows:150/50 --output "$work/$name.windows.tsv"
  fi
done
