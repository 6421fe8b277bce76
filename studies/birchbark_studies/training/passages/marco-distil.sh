#!/usr/bin/env bash
# Make training pairs of MS MARCO's documents as Chen et al. 2021 did for Simplified TinyBERT: for each relevant document
# of the training queries the five windows that a teacher scores highest, and as many random windows of other documents:
# 3.3 million pairs. MARCO is the folder that marco.sh takes, MODEL the teacher. It scores all windows of
# the relevant documents, of which there are about 370,000: DEVICE should be a GPU (cuda). By estimate, it takes 20 GB of
# disk while it runs; it has been run on small files only.
# Run: bash studies/birchbark_studies/training/passages/marco-distil.sh MARCO marco-pool
set -euo pipefail
marco=$1 work=$2 model=${3:-Capreolus/bert-base-msmarco} device=${4:-cuda}
mkdir -p "$work"
pairs() { # OUTPUT OPTION...
  local output=$1
  shift
  birchbark pairs "$marco/msmarco-docs.tsv.gz" --queries "$marco/msmarco-doctrain-queries.tsv.gz" \
    --qrels "$marco/msmarco-doctrain-qrels.tsv.gz" --segments windows:150/50 --output "$output" "$@"
}
pairs "$work/distil.relevant.tsv" --best-segments 5 --scoring-model "$model" --device "$device"
pairs "$work/distil.random.tsv" --random-negatives 5

# One window of each random document, at most as many for a query as it has relevant ones.
awk -F'\t' 'BEGIN { srand(0) }
  function keep() { if (chosen != "" && ++kept[query] <= relevant[query]) print chosen }
  NR == FNR { relevant[$1] += NR > 1; print; next }
  FNR == 1 || $5 > 0 { next }
  $1 != query || $3 != document { keep(); query = $1; document = $3; windows = 0 }
  rand() < 1 / ++windows { chosen = $0 }
  END { keep() }' "$work/distil.relevant.tsv" "$work/distil.random.tsv" > "$work/distil.tsv"
rm "$work/distil.relevant.tsv" "$work/distil.random.tsv"
